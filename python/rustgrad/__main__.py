"""`python -m rustgrad script.py [arguments]`: runs an unmodified PyTorch script with `torch` meaning rustgrad.

`import torch`, `import torch.nn as nn`, `from torch.utils.data import DataLoader` and so on import the
modules of rustgrad themselves, not copies. Only here is `cuda` an alias of the GPU, of any vendor.
Options, exit codes and tracebacks are those of `python` itself: a traceback shows only the frames of the script.
"""

import importlib
import importlib.machinery
import importlib.metadata
import os
import runpy
import sys
import types
import zipfile

import rustgrad

_USAGE = """usage: python -m rustgrad script.py [arguments]     runs a PyTorch script with rustgrad as torch
       python -m rustgrad -m module [arguments]     runs a module
       python -m rustgrad -c code [arguments]       runs a line of code
       python -m rustgrad - [arguments]             runs what it reads; at a terminal, an interactive session
       python -m rustgrad --version | --help

A script may be a directory or an archive with a `__main__`. Options of Python itself (-i, -u, -W, -X, -O ..) come first.
`import torch` and what follows from it mean rustgrad; "cuda" means the GPU, whatever its vendor.
"""
# The release of PyTorch whose API is followed: what libraries find that require a version of torch.
_TORCH_VERSION = f"2.15.0+rustgrad{rustgrad.__version__}"


class _Torch(importlib.metadata.Distribution):
    """The package `torch` as its metadata would describe it."""

    def read_text(self, filename):
        metadata = f"Metadata-Version: 2.1\nName: torch\nVersion: {_TORCH_VERSION}\n"
        return {"METADATA": metadata, "top_level.txt": "torch\n"}.get(filename)

    def locate_file(self, path):
        return os.path.join(os.path.dirname(os.path.abspath(__file__)), path)


class _Distributions(importlib.metadata.DistributionFinder):
    """Finds the metadata of `torch`; its modules are found by `_alias`."""

    def find_spec(self, name, path=None, target=None):
        return None

    def find_distributions(self, context=None):
        return [_Torch()] if context is None or context.name in (None, "torch") else []


def install():
    """Makes `import torch` give rustgrad in this process, under a version of PyTorch, and `cuda` the GPU."""
    sys.modules["torch"] = rustgrad
    if not any(isinstance(f, _Distributions) for f in sys.meta_path):
        sys.meta_path.insert(0, _Distributions())
    # Programs compare it with other versions, as texts and as tuples of numbers.
    version = importlib.import_module("rustgrad.torch_version").TorchVersion(_TORCH_VERSION)
    rustgrad.__version__ = rustgrad.version.__version__ = version
    # Libraries compare it with the name under which they imported it.
    rustgrad.__name__ = "torch"
    native = importlib.import_module("rustgrad._native_names")
    native.install()
    native.rename_classes()
    importlib.import_module("rustgrad._renamed").install()
    rustgrad._C._set_cuda_alias(True)
    importlib.import_module("rustgrad.cuda")._stands_for_gpu = True
    _install_in_children()


class _Preparation:
    """Unpickled by a spawned process before it imports the script: there too, `torch` means rustgrad."""

    def __reduce__(self):
        return install_in_child, ()


def install_in_child():
    """`install`, by a name under which a child process finds it."""
    install()


def _install_in_children():
    """Adds `_Preparation` to what a spawned process gets from this one."""
    from multiprocessing import spawn

    prepare = spawn.get_preparation_data
    if not hasattr(prepare, "__wrapped__"):

        def get_preparation_data(name):
            return {**prepare(name), "rustgrad": _Preparation()}

        get_preparation_data.__wrapped__ = prepare
        spawn.get_preparation_data = get_preparation_data
    _Preparation.__module__ = install_in_child.__module__ = "rustgrad.__main__"
    sys.modules.setdefault("rustgrad.__main__", sys.modules[__name__])


def _main_module(path=None):
    """A fresh `__main__`, which stays after the script's end as Python's does."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    if "__mp_main__" in sys.modules:
        # The name by which `multiprocessing` reads what spawned processes made of the script's classes.
        sys.modules["__mp_main__"] = module
    if path is not None:
        module.__file__ = path
        module.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    return vars(module)


def _search_first(folder):
    """Puts the folder of what runs where Python has it: in the place of the current one, which `-m` puts first."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _run_code(code, arguments):
    sys.argv = ["-c", *arguments]
    _search_first("")
    exec(compile(code, "<string>", "exec"), _main_module())


def _run_input(arguments):
    sys.argv = ["-", *arguments]
    _search_first("")
    space = _main_module()
    if not sys.stdin.isatty():
        exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec"), space)
    elif not sys.flags.interactive:
        # With `-i` Python starts a session itself.
        importlib.import_module("code").interact(local=space, exitmsg="")


def _run_module(name, arguments):
    sys.argv = [name, *arguments]
    _main_module()
    if name.startswith("torch."):
        name = "rustgrad" + name.removeprefix("torch")
    # What `python -m` calls: the module runs in `__main__`, which stays.
    runpy._run_module_as_main(name)


def _run_script(path, arguments):
    sys.argv = [path, *arguments]
    if os.path.isdir(path) or not path.endswith((".py", ".pyw")) and zipfile.is_zipfile(path):
        # Searched even where the current folder is not.
        sys.path[0 : not getattr(sys.flags, "safe_path", False)] = [path]
        _main_module()
        runpy._run_module_as_main("__main__", alter_argv=False)
        return
    path = os.path.abspath(path)
    if path.endswith(".pyc"):
        code = importlib.machinery.SourcelessFileLoader("__main__", path).get_code("__main__")
    else:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
    _search_first(os.path.dirname(os.path.realpath(path)))
    exec(code, _main_module(path))


# Options of the interpreter: single letters, which may stand together, and those with a value.
_FLAGS, _VALUED = set("bBdEiIOPqsSuvx"), ("-W", "-X", "--check-hash-based-pycs")


def _options(argv):
    """How many of the arguments are options of the interpreter, which it must see when it starts."""
    count = 0
    while count < len(argv):
        word = argv[count]
        if word in _VALUED:
            count += 2
        elif word.startswith(("-W", "-X")) or len(word) > 1 and word[0] == "-" and set(word[1:]) <= _FLAGS:
            count += 1
        else:
            break
    return min(count, len(argv))


def _start_again(options, argv):
    """Runs this command in an interpreter with these options."""
    # Those that the present one was given stand before its `-m`.
    given = sys.orig_argv[1:]
    kept = given[: _options(given)]
    command = [sys.executable, *kept, *options, "-m", "rustgrad", *(argv or ["-"])]
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(sys.executable, command)
    return importlib.import_module("subprocess").run(command).returncode


def _report(error):
    """Shows an error of the script as Python does: without the frames of what started it."""
    own = (__file__, runpy.__file__, "<frozen runpy>")
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in own:
        trace = trace.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def main(argv):
    """Runs the script, module or code that the arguments name; returns the exit code."""
    first = argv[0] if argv else None
    if first in ("-h", "--help"):
        print(_USAGE, end="")
        return 0
    if first in ("-V", "--version"):
        print(f"rustgrad {rustgrad.__version__} (Python {sys.version.split()[0]})")
        return 0
    if options := _options(argv):
        return _start_again(argv[:options], argv[options:])
    if (
        first is None
        or (first in ("-c", "-m") and len(argv) < 2)
        or (first.startswith("-") and first not in ("-c", "-m", "-"))
    ):
        if first is not None:
            sys.stderr.write(f"python -m rustgrad: unknown option or missing argument: {first}\n")
        sys.stderr.write(_USAGE)
        return 2
    if first not in ("-c", "-m", "-") and not os.path.exists(first):
        sys.stderr.write(
            f"python -m rustgrad: can't open file {os.path.abspath(first)!r}: [Errno 2] No such file or directory\n"
        )
        return 2
    install()
    run = {"-c": _run_code, "-m": _run_module}.get(first)
    try:
        if first == "-":
            _run_input(argv[1:])
        elif run is None:
            _run_script(first, argv[1:])
        else:
            run(argv[1], argv[2:])
    except SystemExit as error:
        if not sys.flags.interactive:
            raise
        _report(error)
    except BaseException as error:
        _report(error)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


if __name__ == "__main__":
    _code = main(sys.argv[1:])
    # With `-i` a session follows, which an exit would show as an error.
    if _code and not sys.flags.interactive:
        raise SystemExit(_code)

# Sourced before anything that uses the GPU device: finds a Vulkan driver, and where there is none installs Mesa's
# software one if that was asked for (APT=1, CI, or yes to the question at a terminal), or says how to. The tests prefer
# the software driver (lavapipe), so that they do the same on every machine; RUSTGRAD_TEST_ADAPTER=any leaves the choice to wgpu.

rustgrad_vulkan_drivers() {
  ls /usr/share/vulkan/icd.d/$1.json /usr/local/share/vulkan/icd.d/$1.json /etc/vulkan/icd.d/$1.json 2>/dev/null || true
}

# Asked for by APT=1 or CI; refused by APT=0; otherwise root is asked at a terminal, and one that nobody watches agrees.
rustgrad_may_install() {
  case "${APT:-}" in 1) return 0 ;; 0) return 1 ;; esac
  [ -z "${CI:-}" ] || return 0
  [ -t 0 ] && [ -t 2 ] || return 0
  read -r -p "gpu: no Vulkan driver here. Install Mesa's software driver with apt-get (some 60 MB)? [y/N] " answer
  [[ "$answer" = [yY]* ]]
}

# Without it the loader's Wayland layer complains on stderr, to no effect.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}"

if [ "$(uname -s)" = Linux ] && [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ]; then
  if [ -z "$(rustgrad_vulkan_drivers '*')" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && rustgrad_may_install; then
      echo "== apt-get install mesa-vulkan-drivers libvulkan1: Mesa's software Vulkan driver (a minute)" >&2
      (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends mesa-vulkan-drivers libvulkan1) \
        >/dev/null 2>&1 || echo "gpu: installing mesa-vulkan-drivers failed; there is no device 'gpu'" >&2
    else
      echo "gpu: no Vulkan driver, so no device 'gpu' here; to have one: sudo apt-get install mesa-vulkan-drivers libvulkan1" >&2
    fi
  fi
  if [ "${RUSTGRAD_TEST_ADAPTER:-lavapipe}" = lavapipe ] && [ "${DEVICE:-}" != gpu ]; then
    rustgrad_lavapipe=$(rustgrad_vulkan_drivers 'lvp_icd*' | head -n 1)
    # Thousands of small shaders each run a few times: the driver's compiler is what costs, so it does as little as it can.
    [ -z "$rustgrad_lavapipe" ] || export VK_DRIVER_FILES="$rustgrad_lavapipe" GALLIVM_PERF=nopt LP_NATIVE_VECTOR_WIDTH=128
  fi
fi

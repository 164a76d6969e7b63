# Sourced before anything that uses the GPU device: finds a Vulkan driver, installs Mesa's software one
# where it may, and otherwise says in one line how to. The tests prefer the software driver (lavapipe),
# so that they do the same on every machine; RUSTGRAD_TEST_ADAPTER=any leaves the choice to wgpu.

rustgrad_lavapipe() {
  ls /usr/share/vulkan/icd.d/lvp_icd*.json /usr/local/share/vulkan/icd.d/lvp_icd*.json /etc/vulkan/icd.d/lvp_icd*.json 2>/dev/null | head -n 1 || true
}

# Without it the loader's Wayland layer complains on stderr, to no effect.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}"

if [ "$(uname -s)" = Linux ] && [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ]; then
  if [ -z "$(ls /usr/share/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json 2>/dev/null || true)" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends mesa-vulkan-drivers libvulkan1) \
        >/dev/null 2>&1 || echo "gpu: installing mesa-vulkan-drivers failed; GPU tests are skipped" >&2
    else
      echo "gpu: no Vulkan driver here, GPU tests are skipped; to run them: sudo apt-get install mesa-vulkan-drivers libvulkan1" >&2
    fi
  fi
  if [ "${RUSTGRAD_TEST_ADAPTER:-lavapipe}" = lavapipe ] && [ "${DEVICE:-}" != gpu ] && [ -n "$(rustgrad_lavapipe)" ]; then
    export VK_DRIVER_FILES="$(rustgrad_lavapipe)"
  fi
fi

/* fake_nvml_old.c - the same library of long ago, without most of its functions. */
#define FAKE_NVML_OLD
#include "fake_nvml.c"

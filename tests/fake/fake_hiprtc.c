/* fake_hiprtc.c - the fake compiler as AMD's hiprtc: its binaries begin as code objects do, whose kernel has 300 registers. */
#define nvrtcVersion hiprtcVersion
#define nvrtcCreateProgram hiprtcCreateProgram
#define nvrtcDestroyProgram hiprtcDestroyProgram
#define nvrtcCompileProgram hiprtcCompileProgram
#define nvrtcGetProgramLogSize hiprtcGetProgramLogSize
#define nvrtcGetProgramLog hiprtcGetProgramLog
#define nvrtcGetCUBINSize hiprtcGetCodeSize
#define nvrtcGetCUBIN hiprtcGetCode
#define FAKE_BINARY "\177ELF.vgpr_count\315\001\054"
#include "fake_nvrtc.c"

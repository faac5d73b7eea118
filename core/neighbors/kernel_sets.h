// Kernels for special instructions: for x86-64 in kernels_x86.cc, for ARM in kernels_neon.cc.

#ifndef DYNHAC_NEIGHBORS_KERNEL_SETS_H_
#define DYNHAC_NEIGHBORS_KERNEL_SETS_H_

#include "core/base/memory.h"
#include "core/neighbors/kernels.h"

#if defined(__GNUC__) && defined(__x86_64__)
#define DYNHAC_KERNELS_X86
#elif defined(__GNUC__) && defined(__aarch64__)
#define DYNHAC_KERNELS_NEON
#endif

namespace dynhac {

// Appends those that this processor can run, the fastest first.
#if defined(DYNHAC_KERNELS_X86) || defined(DYNHAC_KERNELS_NEON)
void add_special_kernels(Vec<Kernel>& list);
#else
inline void add_special_kernels(Vec<Kernel>&) {}
#endif

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_KERNEL_SETS_H_

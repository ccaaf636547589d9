/* What the kernels share. They are plain loops over buffers that the caller owns: nothing is allocated, nothing can
   fail, and every function gives what its Python counterpart gives, bit for bit. Little-endian machines only. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Eight numbers at once where the processor has the registers; it is asked when the library is loaded. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif
#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* Arrays of the caller, as `loops.py` hands them over. */
typedef struct { int64_t *at, length; } Ints;
typedef struct { int32_t *at; int64_t length; } Indices;
typedef struct { double *at; int64_t length; } Floats;
typedef struct { uint8_t *at; int64_t length; } Bytes;

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline int64_t bounded(int64_t value, int64_t low, int64_t high) {
    const int64_t raised = MAX(value, low);
    return MIN(raised, high);
}

static inline double within(double value, double low, double high) {
    const double raised = MAX(value, low);
    return MIN(raised, high);
}

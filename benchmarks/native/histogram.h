/* A histogram of latencies: 64 steps per power of two, so a percentile is exact to 1.6 %. */
#ifndef BENCHMARK_HISTOGRAM_H
#define BENCHMARK_HISTOGRAM_H
#include <stdint.h>

enum { STEPS = 64, SLOTS = 64 * STEPS };
static uint64_t histogram[SLOTS], histogram_total;

static inline void histogram_add(uint64_t ns)
{
    unsigned slot = (unsigned)ns;
    if (ns >= STEPS) {
        int power = 63 - __builtin_clzll(ns);
        slot = (unsigned)(power - 5) * STEPS + (unsigned)((ns >> (power - 6)) & (STEPS - 1));
    }
    histogram[slot]++;
    histogram_total++;
}

static inline double histogram_seconds(double fraction)
{
    uint64_t wanted = (uint64_t)(fraction * (double)histogram_total), seen = 0;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        seen += histogram[slot];
        if (seen <= wanted) continue;
        if (slot < STEPS) return slot * 1e-9;
        unsigned power = slot / STEPS + 5, step = slot % STEPS;
        return (double)((UINT64_C(64) + step) << (power - 6)) * 1e-9;
    }
    return 0;
}

#endif

/* CRC64-NVME by carry-less multiplication, CRC32C by the processor's own instruction.

   Both take and return finished checksums, so that a checksum goes on where another ended.
   Reflected polynomials throughout: bit 63 (31) stands for x^0. */
#include <stdint.h>
#include <string.h>
#include <wmmintrin.h>
#include <nmmintrin.h>

#define CRC64_POLY 0x9a6c9329ac4bc9b5ULL /* NVM Express Base Specification, 64-bit data protection */

static uint64_t crc64_table[256], fold_128[2], fold_512[2], power_of_x[64];

/* The product of two polynomials modulo the CRC's own. */
static uint64_t crc64_times(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    for (uint64_t bit = 1ULL << 63; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? (b >> 1) ^ CRC64_POLY : b >> 1;
    }
    return product;
}

/* x to the n-th, modulo the CRC's polynomial. */
static uint64_t crc64_x_to(uint64_t n)
{
    uint64_t result = 1ULL << 63;
    for (int i = 0; n; n >>= 1, i++)
        if (n & 1)
            result = crc64_times(result, power_of_x[i]);
    return result;
}

static void sums_begin(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t value = byte;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? (value >> 1) ^ CRC64_POLY : value >> 1;
        crc64_table[byte] = value;
    }
    power_of_x[0] = 1ULL << 62;
    for (int i = 1; i < 64; i++)
        power_of_x[i] = crc64_times(power_of_x[i - 1], power_of_x[i - 1]);
    /* A product of reflected halves comes out one x too high, hence the minus one. */
    fold_128[0] = crc64_x_to(128 + 64 - 1), fold_128[1] = crc64_x_to(128 - 1);
    fold_512[0] = crc64_x_to(512 + 64 - 1), fold_512[1] = crc64_x_to(512 - 1);
}

static uint64_t crc64_bytes(uint64_t state, const uint8_t *data, size_t size)
{
    while (size--)
        state = crc64_table[(state ^ *data++) & 255] ^ (state >> 8);
    return state;
}

__attribute__((target("pclmul,sse4.2"))) static inline __m128i folded(__m128i x, __m128i by)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11));
}

__attribute__((target("pclmul,sse4.2"))) static uint64_t crc64(const void *at, size_t size, uint64_t before)
{
    const uint8_t *data = at;
    uint64_t state = ~before;
    if (size >= 128) {
        const __m128i far = _mm_loadu_si128((const void *)fold_512);
        const __m128i near = _mm_loadu_si128((const void *)fold_128);
        __m128i lane[4];
        for (int i = 0; i < 4; i++)
            lane[i] = _mm_loadu_si128((const void *)(data + 16 * i));
        lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi64_si128((long long)state));
        for (data += 64, size -= 64; size >= 64; data += 64, size -= 64)
            for (int i = 0; i < 4; i++)
                lane[i] = _mm_xor_si128(folded(lane[i], far), _mm_loadu_si128((const void *)(data + 16 * i)));
        for (int i = 1; i < 4; i++)
            lane[0] = _mm_xor_si128(folded(lane[0], near), lane[i]);
        uint8_t rest[16];
        _mm_storeu_si128((void *)rest, lane[0]);
        state = crc64_bytes(0, rest, 16);
    }
    return ~crc64_bytes(state, data, size);
}

/* The checksum of a whole from those of its two parts. */
static uint64_t crc64_joined(uint64_t first, uint64_t second, uint64_t second_size)
{
    return crc64_times(first, crc64_x_to(8 * second_size)) ^ second;
}

__attribute__((target("sse4.2"))) static uint32_t crc32c(const void *at, size_t size, uint32_t before)
{
    const uint8_t *data = at;
    uint64_t state = (uint32_t)~before;
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        state = _mm_crc32_u64(state, word);
    }
    uint32_t last = (uint32_t)state;
    while (size--)
        last = _mm_crc32_u8(last, *data++);
    return ~last;
}

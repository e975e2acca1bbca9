/* sink: a stand-in for S3 that checks what it is told to check, and keeps no large body.

   It honours If-None-Match and If-Match, checks CRC64-NVME, CRC32C, CRC32, SHA-256 and MD5 where a
   request declares one (in a header, a trailer, or on completing an upload), keeps bodies up to a
   size in memory, and reads larger ones only to check them. It checks no signature and knows no
   buckets: it measures whoever sends, and is no place to keep anything.

   sink PORT [-c CERT -k KEY] [-d MS] [-r MB] [-s BYTES]
     -c -k   TLS          -d   wait so long before each answer
     -r      so many 10^6 bytes a second from each connection
     -s      keep bodies up to so many bytes (default 1 MiB)
   build: cc -O2 -o sink sink.c -lssl -lcrypto -lz -lpthread */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "sums.h"
#include "things.h"
#include "wire.h"

static unsigned long requests, body_bytes, checked, refused;

/* What a request says of its body, and what the body was. */
typedef struct {
    char crc64[16], crc32c[12], crc32[12], md5[32], sha256[72];
    int is_framed, wants_crc64;
    uint64_t is_crc64, size;
    uint32_t is_crc32c, is_crc32;
    EVP_MD_CTX *md5_of, *sha256_of;
    char *kept;
} Body;

typedef struct {
    char method[16], target[8192], key[4096], query[4096], meta[1024], if_match[128], type[16], algorithm[24];
    char range[64];
    int if_none_match, expects, closes, is_chunked, at_once;
    uint64_t length;
    Body body;
} Request;

static const char *after(const char *line, const char *name)
{
    size_t n = strlen(name);
    if (strncasecmp(line, name, n))
        return NULL;
    for (line += n; *line == ' '; line++)
        ;
    return line;
}

#define TAKE(name, field) else if ((value = after(line, name))) snprintf(field, sizeof field, "%.*s", (int)sizeof field - 1, value)

static void take_sum(Body *body, const char *line)
{
    const char *value;
    if (0)
        ;
    TAKE("x-amz-checksum-crc64nvme:", body->crc64);
    TAKE("x-amz-checksum-crc32c:", body->crc32c);
    TAKE("x-amz-checksum-crc32:", body->crc32);
    TAKE("content-md5:", body->md5);
}

static void take_header(Request *r, const char *line)
{
    const char *value;
    if ((value = after(line, "content-length:")))
        r->length = strtoull(value, 0, 10);
    else if ((value = after(line, "transfer-encoding:")))
        r->is_chunked = strcasestr(value, "chunked") != NULL;
    else if ((value = after(line, "expect:")))
        r->expects = 1;
    else if ((value = after(line, "connection:")))
        r->closes = !strncasecmp(value, "close", 5);
    else if ((value = after(line, "if-none-match:")))
        r->if_none_match = 1;
    else if (after(line, "x-bench-at-once:"))
        r->at_once = 1; /* who only measures neither waits nor measures the wait */
    else if (after(line, "x-amz-meta-")) {
        size_t used = strlen(r->meta);
        snprintf(r->meta + used, sizeof r->meta - used, "%s\r\n", line);
    } else if ((value = after(line, "x-amz-content-sha256:"))) {
        r->body.is_framed = !strncmp(value, "STREAMING", 9);
        if (strlen(value) == 64)
            snprintf(r->body.sha256, sizeof r->body.sha256, "%s", value);
    }
    TAKE("if-match:", r->if_match);
    TAKE("range:", r->range);
    TAKE("x-amz-checksum-type:", r->type);
    TAKE("x-amz-checksum-algorithm:", r->algorithm);
    else take_sum(&r->body, line);
}

/* A trailer names its checksum before the body; then it has to be computed. */
static int will_sum(const Body *body, const char *declared, const char *trailer, const char *name)
{
    return *declared || (body->is_framed && strcasestr(trailer, name));
}

static void digest(Body *b, const void *at, size_t size, int c64, int c32c, int c32)
{
    if (c64)
        b->is_crc64 = crc64(at, size, b->is_crc64);
    if (c32c)
        b->is_crc32c = crc32c(at, size, b->is_crc32c);
    if (c32)
        b->is_crc32 = (uint32_t)crc32(b->is_crc32, at, (uInt)size);
    if (b->md5_of)
        EVP_DigestUpdate(b->md5_of, at, size);
    if (b->sha256_of)
        EVP_DigestUpdate(b->sha256_of, at, size);
    b->size += size;
}

static EVP_MD_CTX *begun(const EVP_MD *kind)
{
    EVP_MD_CTX *made = EVP_MD_CTX_new();
    EVP_DigestInit_ex(made, kind, NULL);
    return made;
}

/* Read a body, check nothing yet; what is small enough stays in memory. */
static int read_body(Connection *c, Request *r, const char *trailer, size_t most_kept)
{
    Body *b = &r->body;
    static __thread char *block;
    if (!block)
        block = malloc(BLOCK);
    int c64 = b->wants_crc64 || will_sum(b, b->crc64, trailer, "crc64nvme");
    int c32c = will_sum(b, b->crc32c, trailer, "crc32c");
    int c32 = will_sum(b, b->crc32, trailer, "crc32") && !c32c;
    b->md5_of = *b->md5 ? begun(EVP_md5()) : NULL;
    b->sha256_of = *b->sha256 ? begun(EVP_sha256()) : NULL;
    int is_plain = !b->is_framed && !r->is_chunked;
    int keeps = !is_plain || r->length <= most_kept;
    int looks = c64 || c32c || c32 || b->md5_of || b->sha256_of || keeps;
    if (is_plain && !looks)
        return drop(c, r->length, &b->size);
    Stream stream = {.connection = c, .is_chunked = r->is_chunked, .is_framed = b->is_framed, .left = r->length};
    size_t room = is_plain ? r->length : 0;
    if (is_plain && keeps)
        b->kept = malloc(room + 1);
    for (;;) {
        ssize_t n = stream_read(&stream, block, BLOCK);
        if (n < 0)
            return -1;
        if (!n)
            break;
        if (keeps && b->size + n > room && room < most_kept)
            b->kept = realloc(b->kept, (room = (b->size + n) * 2) + 1);
        if (b->kept && b->size + n <= room)
            memcpy(b->kept + b->size, block, n);
        digest(b, block, n, c64, c32c, c32);
    }
    while (stream.trailers && *stream.trailer[--stream.trailers])
        take_sum(b, stream.trailer[stream.trailers]);
    if (!b->kept && !b->size)
        b->kept = malloc(1);
    if (b->size > most_kept)
        free(b->kept), b->kept = NULL;
    return 0;
}

static int differs(const char *declared, const void *is, int size)
{
    char text[64];
    if (!*declared)
        return 0;
    EVP_EncodeBlock((unsigned char *)text, is, size);
    __atomic_add_fetch(&checked, 1, __ATOMIC_RELAXED);
    return strcmp(declared, text) != 0;
}

static int digest_differs(const char *declared, EVP_MD_CTX **of, int is_hex)
{
    unsigned char is[EVP_MAX_MD_SIZE];
    unsigned size;
    if (!*of)
        return 0;
    EVP_DigestFinal_ex(*of, is, &size);
    EVP_MD_CTX_free(*of);
    *of = NULL;
    if (!is_hex)
        return differs(declared, is, (int)size);
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    for (unsigned i = 0; i < size; i++)
        sprintf(hex + 2 * i, "%02x", is[i]);
    __atomic_add_fetch(&checked, 1, __ATOMIC_RELAXED);
    return strcmp(declared, hex) != 0;
}

/* Whether the body is other than the request declares it. */
static int is_damaged(Body *b)
{
    uint64_t wide = __builtin_bswap64(b->is_crc64);
    uint32_t c32c = __builtin_bswap32(b->is_crc32c), c32 = __builtin_bswap32(b->is_crc32);
    int wrong = digest_differs(b->md5, &b->md5_of, 0);
    wrong |= digest_differs(b->sha256, &b->sha256_of, 1);
    return wrong | differs(b->crc64, &wide, 8) | differs(b->crc32c, &c32c, 4) | differs(b->crc32, &c32, 4);
}

#include "answers.h"

static void *serve(void *connection)
{
    Connection *c = connection;
    char line[16384], trailer[256];
    if (c->tls && SSL_accept(c->tls) <= 0)
        goto end;
    for (;;) {
        Request r = {0};
        *trailer = 0;
        if (read_line(c, line, sizeof line))
            break;
        if (!*line)
            continue;
        if (sscanf(line, "%15s %8191s", r.method, r.target) != 2)
            break;
        while (!read_line(c, line, sizeof line) && *line) {
            const char *value = after(line, "x-amz-trailer:");
            if (value)
                snprintf(trailer, sizeof trailer, "%.200s", value);
            take_header(&r, line);
        }
        locate(&r);
        if (r.expects && write_all(c, "HTTP/1.1 100 Continue\r\n\r\n", 25))
            break;
        r.body.wants_crc64 = wants_crc64(&r);
        pace_begin(c);
        int is_question = !strcmp(r.method, "POST"); /* a list of parts: to be read, not kept */
        size_t most = is_question ? 4 << 20 : is_about_parts(&r) ? part_kept : most_kept;
        if (read_body(c, &r, trailer, most)) {
            free(r.body.kept);
            break;
        }
        __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&body_bytes, r.body.size, __ATOMIC_RELAXED);
        if (delay_ms && !r.at_once)
            usleep(delay_ms * 1000);
        int is_over = answer(c, &r) || r.closes;
        free(r.body.kept);
        if (is_over)
            break;
    }
end:
    connection_end(c);
    return NULL;
}

int main(int argc, char **argv)
{
    char *cert = NULL, *key = NULL;
    int option;
    while ((option = getopt(argc, argv, "c:k:d:r:s:")) != -1)
        switch (option) {
        case 'c': cert = optarg; break;
        case 'k': key = optarg; break;
        case 'd': delay_ms = atoi(optarg); break;
        case 'r': bytes_per_second = atof(optarg) * 1e6; break;
        case 's': part_kept = most_kept = strtoull(optarg, 0, 10); break;
        default: return 2;
        }
    if (optind >= argc)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    sums_begin();
    return listen_forever(atoi(argv[optind]), cert, key, serve);
}

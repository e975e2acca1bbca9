/* Connections, with or without TLS, and the bodies that come over them. */
#define BLOCK (256 * 1024)

static unsigned long arrived;
static int delay_ms;
static double bytes_per_second;

typedef struct {
    int socket;
    SSL *tls;
    char *ahead;
    size_t at, end;
    double paced_from;
    uint64_t paced;
} Connection;

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pace_begin(Connection *c)
{
    c->paced_from = seconds_now(), c->paced = 0;
}

/* Wait until the connection's rate allows what was read. */
static void pace(Connection *c, size_t count)
{
    c->paced += count;
    __atomic_add_fetch(&arrived, count, __ATOMIC_RELAXED);
    if (bytes_per_second <= 0)
        return;
    double early = c->paced_from + (double)c->paced / bytes_per_second - seconds_now();
    if (early > 0.0005)
        usleep((useconds_t)(early * 1e6));
}

static ssize_t receive(Connection *c, void *to, size_t most)
{
    if (c->tls) {
        size_t have = 0;
        do { /* whole records while they are there: one checksum call for many */
            int n = SSL_read(c->tls, (char *)to + have, (int)(most - have));
            if (n <= 0)
                return have ? (ssize_t)have : n;
            have += (size_t)n;
        } while (have < most && SSL_has_pending(c->tls));
        return (ssize_t)have;
    }
    ssize_t n;
    do
        n = recv(c->socket, to, most, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

static int fill(Connection *c)
{
    c->at = c->end = 0;
    ssize_t n = receive(c, c->ahead, 16384);
    if (n <= 0)
        return -1;
    c->end = (size_t)n;
    return 0;
}

static ssize_t read_some(Connection *c, char *to, size_t most)
{
    size_t n = c->end - c->at;
    if (bytes_per_second > 0 && most > 65536)
        most = 65536;
    if (!n && most < 4096 && !fill(c))
        n = c->end;
    if (!n) {
        ssize_t got = receive(c, to, most);
        if (got > 0)
            pace(c, (size_t)got);
        return got;
    }
    if (n > most)
        n = most;
    memcpy(to, c->ahead + c->at, n);
    c->at += n;
    pace(c, n);
    return (ssize_t)n;
}

static int read_line(Connection *c, char *to, size_t most)
{
    for (size_t n = 0;;) {
        if (c->at == c->end && fill(c))
            return -1;
        char next = c->ahead[c->at++];
        if (next == '\n') {
            to[n && to[n - 1] == '\r' ? n - 1 : n] = 0;
            return 0;
        }
        if (n + 1 < most)
            to[n++] = next;
    }
}

static int write_all(Connection *c, const char *data, size_t size)
{
    while (size) {
        size_t most = size > (1 << 20) ? 1 << 20 : size;
        ssize_t n = c->tls ? SSL_write(c->tls, data, (int)most) : send(c->socket, data, most, MSG_NOSIGNAL);
        if (n <= 0)
            return -1;
        data += n, size -= (size_t)n;
    }
    return 0;
}

/* Take a body off the connection without looking at it. */
static int drop(Connection *c, uint64_t length, uint64_t *dropped)
{
    static __thread char *block;
    if (!block)
        block = malloc(BLOCK);
    while (*dropped < length) {
        uint64_t left = length - *dropped;
        size_t most = left < BLOCK ? (size_t)left : BLOCK;
        ssize_t n;
        if (c->tls || c->at < c->end || bytes_per_second > 0)
            n = read_some(c, block, most);
        else {
            do
                n = recv(c->socket, NULL, left < (1 << 20) ? (size_t)left : 1 << 20, MSG_TRUNC);
            while (n < 0 && errno == EINTR);
            __atomic_add_fetch(&arrived, n > 0 ? (unsigned long)n : 0, __ATOMIC_RELAXED);
        }
        if (n <= 0)
            return -1;
        *dropped += (uint64_t)n;
    }
    return 0;
}

/* A body under its encodings: chunks of HTTP, and within them perhaps frames of aws-chunked. */
typedef struct {
    Connection *connection;
    int is_chunked, is_framed;
    uint64_t left, in_frame;
    int frame_over;
    int trailers;
    char trailer[4][256];
    int is_over;
} Stream;

/* Read what HTTP carries: 0 at its end. */
static ssize_t carried(Stream *s, char *to, size_t most)
{
    char line[256];
    if (s->is_chunked && !s->left) {
        if (s->is_over)
            return 0;
        if (read_line(s->connection, line, sizeof line))
            return -1;
        s->left = strtoull(line, 0, 16);
        if (!s->left) {
            s->is_over = 1;
            do
                if (read_line(s->connection, line, sizeof line))
                    return -1;
            while (*line);
        }
    }
    if (!s->left)
        return 0;
    ssize_t n = read_some(s->connection, to, s->left < most ? (size_t)s->left : most);
    if (n <= 0)
        return -1;
    s->left -= (uint64_t)n;
    if (s->is_chunked && !s->left && read_line(s->connection, line, sizeof line))
        return -1;
    return n;
}

static int carried_line(Stream *s, char *to, size_t most)
{
    size_t n = 0;
    char next;
    for (;;) {
        ssize_t got = carried(s, &next, 1);
        if (got < 0)
            return -1;
        if (!got || next == '\n')
            break;
        if (next != '\r' && n + 1 < most)
            to[n++] = next;
    }
    to[n] = 0;
    return 0;
}

/* Read the body itself: 0 at its end, when the trailers are there too. */
static ssize_t stream_read(Stream *s, char *to, size_t most)
{
    char line[256];
    if (!s->is_framed)
        return carried(s, to, most);
    if (s->frame_over)
        return 0;
    if (!s->in_frame) {
        if (carried_line(s, line, sizeof line))
            return -1;
        s->in_frame = strtoull(line, 0, 16);
        if (!s->in_frame) {
            s->frame_over = 1;
            while (s->trailers < 4) {
                if (carried_line(s, s->trailer[s->trailers], sizeof s->trailer[0]))
                    return -1;
                if (!*s->trailer[s->trailers++])
                    break;
            }
            while (carried(s, line, sizeof line) > 0)
                ;
            if (s->trailers && !*s->trailer[s->trailers - 1])
                s->trailers--;
            return 0;
        }
    }
    ssize_t n = carried(s, to, s->in_frame < most ? (size_t)s->in_frame : most);
    if (n <= 0)
        return -1;
    s->in_frame -= (uint64_t)n;
    if (!s->in_frame && carried_line(s, line, sizeof line))
        return -1;
    return n;
}

static void connection_end(Connection *c)
{
    if (c->tls)
        SSL_shutdown(c->tls), SSL_free(c->tls);
    close(c->socket);
    free(c->ahead);
    free(c);
}

static SSL_CTX *tls_of(const char *cert, const char *key)
{
    SSL_CTX *made = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(made, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(made, key, SSL_FILETYPE_PEM) != 1) {
        ERR_print_errors_fp(stderr);
        exit(1);
    }
    SSL_CTX_set_read_ahead(made, 1);
    SSL_CTX_set_default_read_buffer_len(made, 1 << 17);
    return made;
}

/* One thread for each connection, for ever. */
static int listen_forever(int port, const char *cert, const char *key, void *(*serve)(void *))
{
    SSL_CTX *tls = cert ? tls_of(cert, key) : NULL;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&where, sizeof where) || listen(listener, 512)) {
        perror("sink");
        return 1;
    }
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&how, 1 << 18);
    for (;;) {
        int accepted = accept(listener, NULL, NULL);
        if (accepted < 0)
            continue;
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        Connection *c = calloc(1, sizeof *c);
        c->socket = accepted;
        c->ahead = malloc(16384);
        if (tls)
            c->tls = SSL_new(tls), SSL_set_fd(c->tls, accepted);
        pthread_t thread;
        if (pthread_create(&thread, &how, serve, c))
            connection_end(c);
    }
}

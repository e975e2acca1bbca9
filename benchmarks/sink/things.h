/* What was stored: objects by name, begun uploads by number. One lock for all of it. */
typedef struct {
    char *data; /* NULL: read, checked, and dropped */
    uint64_t size, crc64;
    uint32_t crc32c;
    char etag[48];
    int is_there;
} Part;

typedef struct Object {
    char *key, *meta;
    Part *parts;
    int count, has_crc64;
    uint64_t size, crc64;
    char etag[48];
    struct Object *next;
} Object;

typedef struct Upload {
    unsigned long number;
    char *key, *meta;
    Part *parts;
    int room, is_full_object;
    struct Upload *next;
} Upload;

#define SHELVES (1 << 16)
static Object *objects[SHELVES];
static Upload *uploads;
static unsigned long last_number, last_version;
static pthread_mutex_t things = PTHREAD_MUTEX_INITIALIZER;
static size_t most_kept = 1 << 20, part_kept = 0;

static Object **shelf_of(const char *key)
{
    uint64_t hash = 1469598103934665603ULL;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 1099511628211ULL;
    return &objects[(hash ^ (hash >> 32)) & (SHELVES - 1)];
}

static Object **place_of(const char *key)
{
    Object **place = shelf_of(key);
    while (*place && strcmp((*place)->key, key))
        place = &(*place)->next;
    return place;
}

static void parts_drop(Part *parts, int count)
{
    for (int i = 0; i < count; i++)
        free(parts[i].data);
    free(parts);
}

static void object_drop(Object **place)
{
    Object *gone = *place;
    if (!gone)
        return;
    *place = gone->next;
    parts_drop(gone->parts, gone->count);
    free(gone->key), free(gone->meta), free(gone);
}

static Upload **upload_of(unsigned long number)
{
    Upload **place = &uploads;
    while (*place && (*place)->number != number)
        place = &(*place)->next;
    return place;
}

static void upload_drop(Upload **place)
{
    Upload *gone = *place;
    *place = gone->next;
    parts_drop(gone->parts, gone->room);
    free(gone->key), free(gone->meta), free(gone);
}

static void version_next(char *etag)
{
    snprintf(etag, 48, "%032lx-1", __atomic_add_fetch(&last_version, 1, __ATOMIC_RELAXED));
}

static Part *part_of(Upload *upload, int number)
{
    if (number > upload->room) {
        int room = number * 2;
        upload->parts = realloc(upload->parts, (size_t)room * sizeof(Part));
        memset(upload->parts + upload->room, 0, (size_t)(room - upload->room) * sizeof(Part));
        upload->room = room;
    }
    return &upload->parts[number - 1];
}

/* What each request is answered. */
typedef struct {
    char *data;
    size_t size, room;
} Text;

static void add(Text *text, const char *format, ...)
{
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    size_t more = (size_t)vsnprintf(NULL, 0, format, values);
    if (text->size + more + 1 > text->room)
        text->data = realloc(text->data, text->room = (text->size + more + 1) * 2);
    vsnprintf(text->data + text->size, more + 1, format, again);
    text->size += more;
    va_end(values), va_end(again);
}

static int say(Connection *c, int status, const char *headers, const char *body, uint64_t length)
{
    char head[4096];
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d Sink\r\nContent-Length: %lu\r\n%s\r\n", status, (unsigned long)length, headers);
    if (body && length <= sizeof head - (size_t)n) {
        memcpy(head + n, body, length);
        return write_all(c, head, (size_t)n + length);
    }
    return write_all(c, head, (size_t)n) || (body && write_all(c, body, length));
}

static int say_nothing(Connection *c, int status)
{
    if (status == 204)
        return write_all(c, "HTTP/1.1 204 Sink\r\n\r\n", 21);
    return say(c, status, "", "", 0);
}

static int fault(Connection *c, const Request *r, int status, const char *code)
{
    char body[256];
    int n = snprintf(body, sizeof body, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>by the sink</Message></Error>", code);
    int is_head = !strcmp(r->method, "HEAD");
    __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
    return say(c, status, "Content-Type: application/xml\r\n", is_head ? NULL : body, is_head ? 0 : (uint64_t)n);
}

static int say_text(Connection *c, Text *text, const char *type)
{
    char header[64];
    snprintf(header, sizeof header, "Content-Type: %s\r\n", type);
    int result = say(c, 200, header, text->data, text->size);
    free(text->data);
    return result;
}

static void unquoted(char *to, size_t most, const char *from, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size && n + 1 < most; i++) {
        unsigned byte;
        if (from[i] == '%' && i + 2 < size && sscanf(from + i + 1, "%2x", &byte) == 1)
            to[n++] = (char)byte, i += 2;
        else
            to[n++] = from[i];
    }
    to[n] = 0;
}

static void locate(Request *r)
{
    const char *query = strchr(r->target, '?');
    size_t size = query ? (size_t)(query - r->target) : strlen(r->target);
    unquoted(r->key, sizeof r->key, r->target, size);
    snprintf(r->query, sizeof r->query, "&%.4000s", query ? query + 1 : "");
}

/* Find a parameter of the query, as it stands after "&". */
static int parameter(const Request *r, const char *name, char *to, size_t most)
{
    size_t n = strlen(name);
    for (const char *at = r->query; (at = strchr(at, '&')); at++) {
        if (strncmp(at + 1, name, n) || (at[n + 1] && !strchr("=&", at[n + 1])))
            continue;
        const char *value = at + 1 + n + (at[n + 1] == '=');
        if (to)
            unquoted(to, most, value, strcspn(value, "&"));
        return 1;
    }
    return 0;
}

static unsigned long upload_number(const Request *r)
{
    char text[32] = "";
    return parameter(r, "uploadId", text, sizeof text) && *text == 'u' ? strtoul(text + 1, 0, 10) : 0;
}

static int part_number(const Request *r)
{
    char text[16] = "";
    int number = parameter(r, "partNumber", text, sizeof text) ? atoi(text) : 0;
    return number >= 1 && number <= 10000 ? number : 0;
}

static int is_about_parts(const Request *r)
{
    return strcmp(r->method, "PUT") == 0 && parameter(r, "partNumber", NULL, 0);
}

/* A whole that is checked needs the checksum of each part, declared there or not. */
static int wants_crc64(const Request *r)
{
    if (!is_about_parts(r))
        return 0;
    pthread_mutex_lock(&things);
    Upload *upload = *upload_of(upload_number(r));
    int wants = upload && upload->is_full_object;
    pthread_mutex_unlock(&things);
    return wants;
}

static int is_same(const char *etag, const char *asked)
{
    size_t n = strlen(etag);
    return !strncmp(asked, etag, n) || (*asked == '"' && !strncmp(asked + 1, etag, n));
}

/* Why a write must not happen: a status, or 0. */
static int condition_fails(const Request *r, const Object *there)
{
    if (r->if_none_match && there)
        return 412;
    if (*r->if_match && !there)
        return 404;
    return *r->if_match && !is_same(there->etag, r->if_match) ? 412 : 0;
}

static int put_object(Connection *c, Request *r)
{
    if (is_damaged(&r->body))
        return fault(c, r, 400, "BadDigest");
    pthread_mutex_lock(&things);
    Object **place = place_of(r->key);
    int status = condition_fails(r, *place);
    char header[64] = "";
    if (!status) {
        object_drop(place);
        Object *made = calloc(1, sizeof *made);
        made->key = strdup(r->key), made->meta = strdup(r->meta);
        made->parts = calloc(1, sizeof(Part)), made->count = 1;
        made->parts[0].data = r->body.kept, r->body.kept = NULL;
        made->size = made->parts[0].size = r->body.size;
        made->has_crc64 = *r->body.crc64 != 0, made->crc64 = r->body.is_crc64;
        version_next(made->etag);
        snprintf(header, sizeof header, "ETag: \"%s\"\r\n", made->etag);
        place = shelf_of(r->key), made->next = *place, *place = made;
    }
    pthread_mutex_unlock(&things);
    return status ? fault(c, r, status, status == 412 ? "PreconditionFailed" : "NoSuchKey") : say(c, 200, header, "", 0);
}

static int put_part(Connection *c, Request *r)
{
    int number = part_number(r);
    char header[64] = "";
    if (!number)
        return fault(c, r, 400, "InvalidArgument");
    if (is_damaged(&r->body))
        return fault(c, r, 400, "BadDigest");
    pthread_mutex_lock(&things);
    Upload *upload = *upload_of(upload_number(r));
    if (upload) {
        Part *part = part_of(upload, number);
        free(part->data);
        *part = (Part){r->body.kept, r->body.size, r->body.is_crc64, r->body.is_crc32c, "", 1};
        r->body.kept = NULL;
        version_next(part->etag);
        snprintf(header, sizeof header, "ETag: \"%s\"\r\n", part->etag);
    }
    pthread_mutex_unlock(&things);
    return upload ? say(c, 200, header, "", 0) : fault(c, r, 404, "NoSuchUpload");
}

static int begin_upload(Connection *c, Request *r)
{
    Upload *made = calloc(1, sizeof *made);
    made->key = strdup(r->key), made->meta = strdup(r->meta);
    made->is_full_object = !strcasecmp(r->algorithm, "CRC64NVME");
    pthread_mutex_lock(&things);
    made->number = ++last_number;
    made->next = uploads, uploads = made;
    pthread_mutex_unlock(&things);
    Text text = {0};
    add(&text, "<?xml version=\"1.0\"?><InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>"
               "<UploadId>u%lu</UploadId></InitiateMultipartUploadResult>", made->number);
    return say_text(c, &text, "application/xml");
}

/* Gather the parts that the request names; return why they do not do. */
static const char *gathered(const Request *r, Upload *upload, Object *to)
{
    const char *at = r->body.kept ? r->body.kept : "";
    if (r->body.kept)
        r->body.kept[r->body.size] = 0;
    while ((at = strstr(at, "<Part>"))) {
        const char *end = strstr(at, "</Part>");
        const char *number = strstr(at, "<PartNumber>"), *etag = strstr(at, "<ETag>");
        if (!end || !number || !etag)
            return "MalformedXML";
        int index = atoi(number + 12);
        if (index < 1 || index > upload->room || !upload->parts[index - 1].is_there)
            return "InvalidPart";
        Part *part = &upload->parts[index - 1];
        const char *found = strstr(etag, part->etag);
        if (!found || found > end)
            return "InvalidPart";
        to->parts = realloc(to->parts, (size_t)(to->count + 1) * sizeof(Part));
        to->parts[to->count++] = *part;
        to->crc64 = crc64_joined(to->crc64, part->crc64, part->size);
        to->size += part->size;
        at = end;
    }
    return to->count ? NULL : "MalformedXML";
}

static int complete_upload(Connection *c, Request *r)
{
    Object *made = calloc(1, sizeof *made);
    pthread_mutex_lock(&things);
    Upload **of = upload_of(upload_number(r));
    const char *code = *of ? gathered(r, *of, made) : "NoSuchUpload";
    int status = !*of ? 404 : code ? 400 : condition_fails(r, *place_of(r->key));
    uint64_t wide = __builtin_bswap64(made->crc64);
    if (status && !code)
        code = "PreconditionFailed";
    else if (!status && *of && (*of)->is_full_object && differs(r->body.crc64, &wide, 8))
        status = 400, code = "BadDigest";
    if (!status) {
        made->key = strdup(r->key), made->meta = strdup((*of)->meta);
        made->has_crc64 = (*of)->is_full_object;
        version_next(made->etag);
        object_drop(place_of(r->key));
        Object **place = shelf_of(r->key);
        made->next = *place, *place = made;
        for (int i = 0; i < (*of)->room; i++) /* the object holds their data now */
            (*of)->parts[i].data = NULL;
        upload_drop(of);
    } else
        free(made->parts), free(made);
    Text text = {0};
    if (!status)
        add(&text, "<?xml version=\"1.0\"?><CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket>"
                   "<Key>k</Key><ETag>\"%s\"</ETag></CompleteMultipartUploadResult>", made->etag);
    pthread_mutex_unlock(&things);
    return status ? fault(c, r, status, code) : say_text(c, &text, "application/xml");
}

static int about_upload(Connection *c, Request *r)
{
    pthread_mutex_lock(&things);
    Upload **of = upload_of(upload_number(r));
    int is_there = *of != NULL, drops = !strcmp(r->method, "DELETE");
    if (is_there && drops)
        upload_drop(of);
    pthread_mutex_unlock(&things);
    if (!is_there)
        return fault(c, r, 404, "NoSuchUpload");
    Text text = {0};
    add(&text, "<?xml version=\"1.0\"?><ListPartsResult><IsTruncated>false</IsTruncated></ListPartsResult>");
    if (!drops)
        return say_text(c, &text, "application/xml");
    free(text.data);
    return say_nothing(c, 204);
}

/* An object keeps its place while it is read: nobody overwrites what he is just reading here. */
static int get_object(Connection *c, Request *r)
{
    char header[2048];
    unsigned long from = 0, to = ~0UL;
    pthread_mutex_lock(&things);
    Object *object = *place_of(r->key);
    pthread_mutex_unlock(&things);
    if (!object)
        return fault(c, r, 404, "NoSuchKey");
    int is_part = sscanf(r->range, "bytes=%lu-%lu", &from, &to) >= 1;
    if (to >= object->size)
        to = object->size - 1;
    if (is_part && from >= object->size)
        return fault(c, r, 416, "InvalidRange");
    uint64_t wide = __builtin_bswap64(object->crc64);
    char sum[16];
    EVP_EncodeBlock((unsigned char *)sum, (void *)&wide, 8);
    int n = snprintf(header, sizeof header, "ETag: \"%s\"\r\nLast-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\n%s", object->etag, object->meta);
    if (object->has_crc64 && !is_part) /* not of a range */
        n += snprintf(header + n, sizeof header - (size_t)n, "x-amz-checksum-crc64nvme: %s\r\nx-amz-checksum-type: FULL_OBJECT\r\n", sum);
    if (is_part)
        snprintf(header + n, sizeof header - (size_t)n, "Content-Range: bytes %lu-%lu/%lu\r\n", from, to, (unsigned long)object->size);
    uint64_t length = object->size ? to - from + 1 : 0;
    if (!strcmp(r->method, "HEAD"))
        return say(c, 200, header, NULL, length);
    for (int i = 0; i < object->count; i++)
        if (object->parts[i].size && !object->parts[i].data)
            return fault(c, r, 410, "Discarded");
    if (say(c, is_part ? 206 : 200, header, NULL, length))
        return -1;
    for (int i = 0; i < object->count && length; i++) {
        uint64_t size = object->parts[i].size;
        if (from >= size) {
            from -= size;
            continue;
        }
        uint64_t now = size - from < length ? size - from : length;
        if (write_all(c, object->parts[i].data + from, now))
            return -1;
        length -= now, from = 0;
    }
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(Object *const *)a)->key, (*(Object *const *)b)->key);
}

static void add_key(Text *text, const char *key)
{
    for (; *key; key++)
        add(text, strchr("-_.~/", *key) || (*key >= '0' && *key <= '9') || ((*key | 32) >= 'a' && (*key | 32) <= 'z') ? "%c" : "%%%02X", (unsigned char)*key);
}

/* Every object of a bucket below a prefix, on one page. */
static int list_objects(Connection *c, Request *r)
{
    char prefix[4096] = "", below[8192];
    parameter(r, "prefix", prefix, sizeof prefix);
    int n = snprintf(below, sizeof below, "%.4000s%s%.4000s", r->key, r->key[strlen(r->key) - 1] == '/' ? "" : "/", prefix);
    size_t bucket = (size_t)n - strlen(prefix), count = 0, room = 64;
    Object **found = malloc(room * sizeof *found);
    Text text = {0};
    pthread_mutex_lock(&things);
    for (int i = 0; i < SHELVES; i++)
        for (Object *o = objects[i]; o; o = o->next) {
            if (strncmp(o->key, below, (size_t)n))
                continue;
            if (count == room)
                found = realloc(found, (room *= 2) * sizeof *found);
            found[count++] = o;
        }
    qsort(found, count, sizeof *found, by_key);
    add(&text, "<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated><KeyCount>%zu</KeyCount>", count);
    for (size_t i = 0; i < count; i++) {
        add(&text, "<Contents><Key>");
        add_key(&text, found[i]->key + bucket);
        add(&text, "</Key><LastModified>2026-12-01T00:00:00.000Z</LastModified><ETag>\"%s\"</ETag><Size>%lu</Size><StorageClass>STANDARD</StorageClass></Contents>",
            found[i]->etag, (unsigned long)found[i]->size);
    }
    add(&text, "</ListBucketResult>");
    pthread_mutex_unlock(&things);
    free(found);
    return say_text(c, &text, "application/xml");
}

static int delete_object(Connection *c, Request *r)
{
    pthread_mutex_lock(&things);
    object_drop(place_of(r->key));
    pthread_mutex_unlock(&things);
    return say_nothing(c, 204);
}

static int about_bucket(Connection *c, Request *r)
{
    Text text = {0};
    if (!strcmp(r->method, "PUT") || !strcmp(r->method, "HEAD"))
        return say(c, 200, "x-amz-bucket-region: us-east-1\r\n", strcmp(r->method, "PUT") ? NULL : "", 0);
    if (!strcmp(r->key, "/"))
        add(&text, "<?xml version=\"1.0\"?><ListAllMyBucketsResult><Buckets><Bucket><Name>bucket</Name></Bucket></Buckets></ListAllMyBucketsResult>");
    else if (parameter(r, "location", NULL, 0))
        add(&text, "<?xml version=\"1.0\"?><LocationConstraint></LocationConstraint>");
    else if (parameter(r, "uploads", NULL, 0))
        add(&text, "<?xml version=\"1.0\"?><ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>");
    else
        return list_objects(c, r);
    return say_text(c, &text, "application/xml");
}

static int say_counts(Connection *c)
{
    Text text = {0};
    add(&text, "{\"requests\": %lu, \"bytes\": %lu, \"checked\": %lu, \"refused\": %lu, \"arrived\": %lu}\n",
        requests, body_bytes, checked, refused, arrived);
    return say_text(c, &text, "application/json");
}

static int answer(Connection *c, Request *r)
{
    const char *slash = strchr(r->key + 1, '/');
    if (!strcmp(r->key, "/_counts"))
        return say_counts(c);
    if (!slash || !slash[1])
        return about_bucket(c, r);
    if (!strcmp(r->method, "PUT"))
        return is_about_parts(r) ? put_part(c, r) : put_object(c, r);
    if (!strcmp(r->method, "POST"))
        return parameter(r, "uploads", NULL, 0) ? begin_upload(c, r) : complete_upload(c, r);
    if (parameter(r, "uploadId", NULL, 0))
        return about_upload(c, r);
    if (!strcmp(r->method, "DELETE"))
        return delete_object(c, r);
    return get_object(c, r);
}

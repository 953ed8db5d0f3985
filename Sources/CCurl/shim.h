#ifndef CANOPYD_CCURL_SHIM_H
#define CANOPYD_CCURL_SHIM_H
// libcurl's setters are variadic, which Swift cannot call.
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

// Errors whose names are not in every libcurl from 7.85 to 8: two are macros there, which Swift does not read,
// and two came later.
static const CURLcode ccurl_http_post_error = (CURLcode)34;
static const CURLcode ccurl_function_not_found = (CURLcode)41;
static const CURLcode ccurl_too_large = (CURLcode)100;
static const CURLcode ccurl_ech_required = (CURLcode)101;

// CURLOPT_QUICK_EXIT, which came with 7.87: one that is older refuses it when it runs, and does not keep us from
// being built.
static const CURLoption ccurl_quick_exit = (CURLoption)(CURLOPTTYPE_LONG + 322);

typedef size_t (*ccurl_write_callback)(char *, size_t, size_t, void *);
typedef int (*ccurl_progress_callback)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
typedef int (*ccurl_before_request_callback)(void *, char *, char *, int, int);
typedef int (*ccurl_socket_callback)(void *, curl_socket_t, curlsocktype);

static inline CURLcode ccurl_set_string(CURL *c, CURLoption o, const char *v) {
    return curl_easy_setopt(c, o, v);
}
static inline CURLcode ccurl_set_long(CURL *c, CURLoption o, long v) {
    return curl_easy_setopt(c, o, v);
}
static inline CURLcode ccurl_set_pointer(CURL *c, CURLoption o, void *v) {
    return curl_easy_setopt(c, o, v);
}
static inline CURLcode ccurl_set_before_request(CURL *c, ccurl_before_request_callback f, void *v) {
    CURLcode r = curl_easy_setopt(c, CURLOPT_PREREQFUNCTION, f);
    return r ? r : curl_easy_setopt(c, CURLOPT_PREREQDATA, v);
}
static inline CURLcode ccurl_set_write(CURL *c, ccurl_write_callback f, void *v) {
    CURLcode r = curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, f);
    return r ? r : curl_easy_setopt(c, CURLOPT_WRITEDATA, v);
}
static inline CURLcode ccurl_set_progress(CURL *c, ccurl_progress_callback f, void *v) {
    CURLcode r = curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, f);
    if (!r) r = curl_easy_setopt(c, CURLOPT_XFERINFODATA, v);
    return r ? r : curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
}
static inline CURLcode ccurl_set_socket(CURL *c, ccurl_socket_callback f, void *v) {
    CURLcode r = curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, f);
    return r ? r : curl_easy_setopt(c, CURLOPT_SOCKOPTDATA, v);
}
static inline long ccurl_get_long(CURL *c, CURLINFO info) {
    long v = 0;
    curl_easy_getinfo(c, info, &v);
    return v;
}
// A field of the server's own certificate, as CURLOPT_CERTINFO lists it; lives as long as the handle.
static inline const char *ccurl_certificate_field(CURL *c, const char *name) {
    struct curl_certinfo *info = NULL;
    if (curl_easy_getinfo(c, CURLINFO_CERTINFO, &info) || !info || info->num_of_certs < 1)
        return NULL;
    size_t length = strlen(name);
    for (struct curl_slist *field = info->certinfo[0]; field; field = field->next)
        if (!strncmp(field->data, name, length) && field->data[length] == ':')
            return field->data + length + 1;
    return NULL;
}
#endif

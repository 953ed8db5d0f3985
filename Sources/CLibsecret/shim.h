#ifndef CANOPYD_CLIBSECRET_SHIM_H
#define CANOPYD_CLIBSECRET_SHIM_H
// What Swift cannot say of libsecret and GLib: a schema, which C initialises as a fixed-size
// array; casts that are macros; GVariant's variadic constructors.
#include <libsecret/secret.h>
#include <pthread.h>
#include <time.h>

static inline const SecretSchema *clibsecret_session_schema(void) {
    static const SecretSchema schema = {
        "com.canopy-io.canopyd.session",
        SECRET_SCHEMA_NONE,
        {
            { "profile", SECRET_SCHEMA_ATTRIBUTE_STRING },
            { "machine", SECRET_SCHEMA_ATTRIBUTE_STRING },
            { NULL, 0 },
        },
    };
    return &schema;
}
// What the doctor writes, reads and deletes: nobody takes it for a session.
static inline const SecretSchema *clibsecret_probe_schema(void) {
    static const SecretSchema schema = {
        "com.canopy-io.canopyd.probe", SECRET_SCHEMA_NONE,
        { { "profile", SECRET_SCHEMA_ATTRIBUTE_STRING }, { NULL, 0 } },
    };
    return &schema;
}
static inline GHashTable *clibsecret_attributes(const char *profile, const char *machine) {
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (profile) g_hash_table_replace(table, g_strdup("profile"), g_strdup(profile));
    if (machine) g_hash_table_replace(table, g_strdup("machine"), g_strdup(machine));
    return table;
}
static inline const char *clibsecret_attribute(GHashTable *table, const char *key) {
    return (const char *)g_hash_table_lookup(table, key);
}
static inline SecretItem *clibsecret_item(gpointer object) { return SECRET_ITEM(object); }
static inline GDBusProxy *clibsecret_proxy(gpointer object) { return G_DBUS_PROXY(object); }
static inline void clibsecret_free_objects(GList *list) { g_list_free_full(list, g_object_unref); }
static inline GVariant *clibsecret_variant_string(const char *text) {
    return g_variant_new("(s)", text);
}
static inline GVariant *clibsecret_variant_paths(const char *path) {
    const char *paths[] = { path, NULL };
    return g_variant_new("(@ao)", g_variant_new_objv(paths, 1));
}
// A property of any object of the service, as (v).
static inline GVariant *clibsecret_property(GDBusProxy *service, const char *path,
                                            const char *interface, const char *name, int timeout,
                                            GCancellable *cancellable, GError **error) {
    return g_dbus_connection_call_sync(
        g_dbus_proxy_get_connection(service), g_dbus_proxy_get_name(service), path,
        "org.freedesktop.DBus.Properties", "Get", g_variant_new("(ss)", interface, name),
        G_VARIANT_TYPE("(v)"), G_DBUS_CALL_FLAGS_NONE, timeout, cancellable, error);
}
// The paths in an answer of clibsecret_property; NULL if it is no array of paths. Free with
// g_strfreev.
static inline char **clibsecret_paths_of(GVariant *answer) {
    GVariant *value = NULL;
    g_variant_get(answer, "(v)", &value);
    char **paths = NULL;
    if (g_variant_is_of_type(value, G_VARIANT_TYPE_OBJECT_PATH_ARRAY))
        paths = g_variant_dup_objv(value, NULL);
    g_variant_unref(value);
    return paths;
}
// The prompt path of an answer to Unlock, (ao, o); free with g_free.
static inline char *clibsecret_prompt_of(GVariant *answer) {
    char *prompt = NULL;
    g_variant_get(answer, "(@aoo)", NULL, &prompt);
    return prompt;
}
static inline char *clibsecret_single_path(GVariant *answer) {
    char *path = NULL;
    g_variant_get(answer, "(o)", &path);
    return path;
}
static inline char *clibsecret_single_string(GVariant *answer) {
    char *text = NULL;
    g_variant_get(answer, "(s)", &text);
    return text;
}

// No prompt: libsecret shows one from many of its calls, and nobody may be there to answer. Its
// prompting is a method of the class, so the class is made to refuse, but for the calls of a service
// that prompts where it has nothing to ask.
//
// Whatever a prompt makes is freed before the service is gone. libsecret's calls that wait run a main
// context of their own, and let go of a prompt when they run it no more; GDBus frees what the prompt
// listened with in a next turn of just that context. So it is kept, and gets that turn here.
static inline void clibsecret_run_out(gpointer context) {
    while (g_main_context_iteration(context, FALSE)) {}
    g_main_context_unref(context);
}
// Keeps the context that a prompt was made in: until the next prompt, or the end of the service.
static inline void clibsecret_keep_context(SecretService *service) {
    GMainContext *context = g_main_context_ref_thread_default();
    if (context == g_object_get_data(G_OBJECT(service), "canopyd-context"))
        g_main_context_unref(context);
    else
        g_object_set_data_full(G_OBJECT(service), "canopyd-context", context, clibsecret_run_out);
}
static inline void clibsecret_allow_prompts(SecretService *service, gboolean allowed) {
    g_object_set_data(G_OBJECT(service), "canopyd-prompts", GINT_TO_POINTER(allowed));
}
static inline gboolean clibsecret_allows_prompts(SecretService *service) {
    return GPOINTER_TO_INT(g_object_get_data(G_OBJECT(service), "canopyd-prompts"));
}
// Nobody waits for the answer: the prompt's end is what tells that it was dismissed.
static inline void clibsecret_dismiss(GCancellable *cancellable, gpointer prompt) {
    (void)cancellable;
    g_dbus_proxy_call(G_DBUS_PROXY(prompt), "Dismiss", NULL, G_DBUS_CALL_FLAGS_NO_AUTO_START, -1,
                      NULL, NULL, NULL);
}
static inline void clibsecret_prompted(GObject *prompt, GAsyncResult *result, gpointer task) {
    g_cancellable_disconnect(g_task_get_cancellable(task),
                             GPOINTER_TO_SIZE(g_task_get_task_data(task)));
    GError *error = NULL;
    GVariant *answer = secret_prompt_perform_finish(SECRET_PROMPT(prompt), result, &error);
    if (error)
        g_task_return_error(task, error);
    else if (answer)
        g_task_return_pointer(task, answer, (GDestroyNotify)g_variant_unref);
    else
        g_task_return_new_error(task, SECRET_ERROR, SECRET_ERROR_PROTOCOL,
                                "the keyring's prompt ended without an answer");
    g_object_unref(task);
}
// Performs the prompt under the call's deadline, without giving libsecret the cancellable: it would
// never let go of it, and tell of the dismissal in a context that nobody runs.
static inline void clibsecret_perform(SecretPrompt *prompt, const GVariantType *type, GTask *task) {
    secret_prompt_perform(prompt, "", type, NULL, clibsecret_prompted, task);
    GCancellable *cancellable = g_task_get_cancellable(task);
    // After the prompt was asked for: one that comes after its dismissal would stay.
    gulong connection = g_cancellable_connect(cancellable, G_CALLBACK(clibsecret_dismiss),
                                              g_object_ref(prompt), g_object_unref);
    g_task_set_task_data(task, GSIZE_TO_POINTER(connection), NULL);
}
static inline void clibsecret_refuse_async(SecretService *service, SecretPrompt *prompt,
                                           const GVariantType *type, GCancellable *cancellable,
                                           GAsyncReadyCallback callback, gpointer data) {
    clibsecret_keep_context(service);
    GTask *task = g_task_new(service, cancellable, callback, data);
    if (clibsecret_allows_prompts(service)) {
        clibsecret_perform(prompt, type, task);
        return;
    }
    g_task_return_new_error(task, SECRET_ERROR, SECRET_ERROR_IS_LOCKED,
                            "the keyring wants to ask the user something");
    g_object_unref(task);
}
// libsecret's own calls prompt by the asynchronous one alone, those that wait as well.
static inline GVariant *clibsecret_refuse_sync(SecretService *service, SecretPrompt *prompt,
                                               GCancellable *cancellable,
                                               const GVariantType *type, GError **error) {
    (void)service, (void)prompt, (void)cancellable, (void)type;
    g_set_error_literal(error, SECRET_ERROR, SECRET_ERROR_IS_LOCKED,
                        "the keyring wants to ask the user something");
    return NULL;
}
static inline GVariant *clibsecret_refuse_finish(SecretService *service, GAsyncResult *result,
                                                 GError **error) {
    (void)service;
    return g_task_propagate_pointer(G_TASK(result), error);
}
static inline void clibsecret_forbid_prompts(void) {
    SecretServiceClass *type = g_type_class_ref(SECRET_TYPE_SERVICE);
    type->prompt_sync = clibsecret_refuse_sync;
    type->prompt_async = clibsecret_refuse_async;
    type->prompt_finish = clibsecret_refuse_finish;
}

// One deadline for one call: a thread that calls `slow` when the call has taken long, cancels it when
// the deadline has come, and if it does not return even then (a bus that accepts and never answers)
// calls `hopeless`, which ends the process. Locked with pthread's mutexes: GLib's are futexes of its own,
// which ThreadSanitizer takes for no locks.
struct clibsecret_deadline {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    GCancellable *cancellable;
    gint64 slowness;
    gint64 span;
    gint64 grace;
    void (*slow)(void);
    void (*hopeless)(void);
    gboolean over;
    GThread *thread;
};
// Whether the call was over by `end`, a time of g_get_monotonic_time.
static inline gboolean clibsecret_deadline_wait(struct clibsecret_deadline *deadline, gint64 end) {
    struct timespec moment = { .tv_sec = end / G_USEC_PER_SEC,
                               .tv_nsec = end % G_USEC_PER_SEC * 1000 };
    while (!deadline->over
           && pthread_cond_timedwait(&deadline->changed, &deadline->mutex, &moment) == 0) {}
    return deadline->over;
}
static inline gpointer clibsecret_deadline_run(gpointer data) {
    struct clibsecret_deadline *deadline = data;
    pthread_mutex_lock(&deadline->mutex);
    gint64 start = g_get_monotonic_time();
    if (!clibsecret_deadline_wait(deadline, start + deadline->slowness)) deadline->slow();
    if (!clibsecret_deadline_wait(deadline, start + deadline->span)) {
        g_cancellable_cancel(deadline->cancellable);
        if (!clibsecret_deadline_wait(deadline, g_get_monotonic_time() + deadline->grace))
            deadline->hopeless();
    }
    pthread_mutex_unlock(&deadline->mutex);
    return NULL;
}
// Spans are microseconds; `slow` is called with the lock of clibsecret_deadline_end held.
static inline struct clibsecret_deadline *clibsecret_deadline_begin(gint64 slowness, gint64 span,
                                                                    gint64 grace,
                                                                    void (*slow)(void),
                                                                    void (*hopeless)(void)) {
    struct clibsecret_deadline *deadline = g_new0(struct clibsecret_deadline, 1);
    pthread_mutex_init(&deadline->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&deadline->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    deadline->cancellable = g_cancellable_new();
    deadline->slowness = slowness;
    deadline->span = span;
    deadline->grace = grace;
    deadline->slow = slow;
    deadline->hopeless = hopeless;
    deadline->thread = g_thread_new("deadline", clibsecret_deadline_run, deadline);
    return deadline;
}
// Returns whether the deadline had come.
static inline int clibsecret_deadline_end(struct clibsecret_deadline *deadline) {
    pthread_mutex_lock(&deadline->mutex);
    deadline->over = TRUE;
    pthread_cond_signal(&deadline->changed);
    pthread_mutex_unlock(&deadline->mutex);
    g_thread_join(deadline->thread);
    int came = g_cancellable_is_cancelled(deadline->cancellable);
    g_object_unref(deadline->cancellable);
    pthread_mutex_destroy(&deadline->mutex);
    pthread_cond_destroy(&deadline->changed);
    g_free(deadline);
    return came;
}

// Lets go of a connection that was closed: what GDBus still has to tell of it, in the main context
// that nothing else runs here, holds the one connection that all callers share.
static inline void clibsecret_forget_closed(void) {
    while (g_main_context_iteration(NULL, FALSE)) {}
}

// The process behind a bus name; 0 if the bus does not say.
static inline unsigned clibsecret_process_of(GDBusConnection *connection, const char *name,
                                             int timeout, GCancellable *cancellable) {
    GVariant *answer = g_dbus_connection_call_sync(
        connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
        "GetConnectionUnixProcessID", g_variant_new("(s)", name), G_VARIANT_TYPE("(u)"),
        G_DBUS_CALL_FLAGS_NONE, timeout, cancellable, NULL);
    if (!answer) return 0;
    unsigned process = 0;
    g_variant_get(answer, "(u)", &process);
    g_variant_unref(answer);
    return process;
}
#endif

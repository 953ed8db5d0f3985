#ifndef CANOPYD_CLIBSECRET_SHIM_H
#define CANOPYD_CLIBSECRET_SHIM_H
// What Swift cannot say of libsecret and GLib: a schema, which C initialises as a fixed-size
// array; casts that are macros; GVariant's variadic constructors.
#include <libsecret/secret.h>

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
static inline GVariant *clibsecret_variant_property(const char *interface, const char *name) {
    return g_variant_new("(ss)", interface, name);
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
#endif

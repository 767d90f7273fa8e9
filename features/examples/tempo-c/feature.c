// An action in C: shows the tempo that is tapped on a pad.
//
// Written against the contract without a generator, to show what crosses the boundary: the component model's
// canonical ABI. A text is an address and a length. A `result` that does not fit into one value is a record in
// memory: whether it is an error (1 byte), and from the 4th byte on the value, or which error (1 byte), and from
// the 8th on its text.
#include <stddef.h>
#include <stdint.h>

#define IMPORT(interface, function) \
    __attribute__((import_module("conductor:feature/" interface "@0.1.0"), import_name(function)))
#define EXPORT(interface, function) __attribute__((export_name("conductor:feature/" interface "@0.1.0#" function)))

typedef struct {
    uint8_t is_error;
    union {
        uint32_t value;
        uint8_t error;
    };
    const char *text;
    size_t length;
} Result;

enum { DENIED, UNAVAILABLE, INVALID, EXHAUSTED, FAILED };

// What is lent has to be given back before the call returns.
IMPORT("install", "[resource-drop]context") void context_drop(uint32_t context);
IMPORT("action-registrar", "[static]registrar.open") void registrar_open(uint32_t context, Result *result);
IMPORT("action-registrar", "[method]registrar.register")
void registrar_register(uint32_t self, const char *name, size_t name_length, const char *schema,
                        size_t schema_length, Result *result);
IMPORT("action-registrar", "[resource-drop]registrar") void registrar_drop(uint32_t registrar);
IMPORT("alerts", "[static]sink.open") void sink_open(uint32_t context, Result *result);
IMPORT("alerts", "[method]sink.emit") void sink_emit(uint32_t self, const char *text, size_t length);

// The host asks for memory to put texts into. They are of no use when the call returns, so each call begins anew.
static char arena[16 * 1024];
static size_t taken;

__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, size_t old_size, size_t align,
                                                                 size_t size) {
    size_t at = (taken + align - 1) / align * align;
    if (at > sizeof arena || size > sizeof arena - at) __builtin_trap();
    taken = at + size;
    for (size_t i = 0; i < old_size && i < size; i++) arena[at + i] = ((char *)old)[i];
    return arena + at;
}

static Result result;

static Result *done(uint32_t value) {
    result = (Result){.value = value};
    return &result;
}

#define TEXT(text) (text), sizeof(text) - 1

static Result *failed(uint8_t error, const char *text, size_t length) {
    result = (Result){.is_error = 1, .error = error, .text = text, .length = length};
    return &result;
}

// Each use of the action has its own last tap.
enum { USES = 64 };
static struct {
    uint8_t used;
    uint8_t tapped;
    uint64_t last;
} uses[USES];
static uint32_t alerts;

// Runs once for every instance, and registers what feature.toml declares.
EXPORT("lifecycle", "install") Result *install(uint32_t context) {
    uint32_t registrar;
    registrar_open(context, &result);
    if (result.is_error) goto end;
    registrar = result.value;
    registrar_register(registrar, TEXT("TellTempo"), TEXT("{\"type\": \"object\", \"additionalProperties\": false}"),
                       &result);
    registrar_drop(registrar);
    if (result.is_error) goto end;
    sink_open(context, &result);
    alerts = result.value;
end:
    context_drop(context);
    taken = 0;
    return result.is_error ? &result : done(0);
}

// `params` is a JSON object; it has no blanks.
EXPORT("actions", "prepare")
Result *prepare(const char *name, size_t name_length, const char *params, size_t params_length) {
    (void)name, (void)name_length, (void)params, taken = 0;
    if (params_length != 2) return failed(INVALID, TEXT("TellTempo takes no parameters"));
    for (uint32_t use = 0; use < USES; use++) {
        if (!uses[use].used) {
            uses[use].used = 1, uses[use].tapped = 0;
            return done(use);
        }
    }
    return failed(EXHAUSTED, TEXT("TellTempo can be used 64 times"));
}

// An event's fields, in the contract's order; `at` is in nanoseconds. Called for every event: 20 ms at most.
EXPORT("actions", "perform")
Result *perform(uint32_t use, uint64_t at, uint32_t device, uint32_t kind, uint32_t channel, uint32_t number,
                uint32_t position, double value, float unit) {
    (void)device, (void)kind, (void)channel, (void)number, (void)position, (void)value, (void)unit;
    if (use >= USES) return failed(INVALID, TEXT("no such use of TellTempo"));
    uint64_t since = at - uses[use].last;
    uint8_t first = !uses[use].tapped;
    uses[use].tapped = 1, uses[use].last = at;
    // Taps further apart than three seconds are no beat.
    if (first || since == 0 || since > 3000000000) return done(0);
    uint64_t beats = (60000000000 + since / 2) / since;
    if (beats > 999) return done(0);
    char text[] = "000 beats a minute";
    for (int digit = 2; digit >= 0; digit--, beats /= 10) text[digit] = (char)('0' + beats % 10);
    size_t skipped = text[0] != '0' ? 0 : text[1] != '0' ? 1 : 2;
    sink_emit(alerts, text + skipped, sizeof text - 1 - skipped);
    return done(0);
}

EXPORT("actions", "release") void release(uint32_t use) {
    if (use < USES) uses[use].used = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise for C++17: distributed locks, as values that release themselves.
 *
 *   mortise::client client;                            // $MORTISE_URL, or a file of this user
 *   mortise::lock lock = client.mutex("accounts/17");
 *   if (mortise::hold hold = lock.acquire_for(5s)) ...  // released at the end of the block
 *
 * Purpose: ownership, std::chrono and errors in C++; the contract of each call is in mortise.h.
 *
 * Errors. Each call that can fail throws mortise::error, or, given a std::error_code as its last
 * argument, sets that and gives an empty value. Codes belong to mortise::category() and compare
 * with mortise::errc, with a mortise::kind, and with the std::errc of the same meaning.
 * last_detail() has the particulars. With -fno-exceptions that argument has no default. A lock that
 * is not free in time is no exception: the hold is empty.
 *
 * Invariant: no exception passes through C. A callback that throws ends the program, as a thread
 * does; the function of cell::update may throw, and its exception comes out of update.
 * Invariant: a client stays open while a lock, hold, election or cell of it is there. After
 * client::close they answer errc::closed, and nothing of C's that was freed is touched. If the last
 * of them ends in a callback, where C cannot wait, a thread of its own closes the client.
 *
 * Threads. As mortise.h says: clients and locks may be shared; a hold is one object's, and belongs
 * to the thread that acquired it, unless its lock has another owner. close() must not run beside
 * other calls. Callbacks run on a thread of the client's and must not block.
 *
 * Coroutines. With C++20, `co_await lock.async_acquire()` gives the hold and resumes on the
 * client's thread, or wherever .on(post) posts it.
 */
#ifndef MORTISE_HPP
#define MORTISE_HPP

#include <mortise.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(__cpp_impl_coroutine) && defined(__has_include)
#if __has_include(<coroutine>)
#include <coroutine>
#define MORTISE_HPP_COROUTINES 1
#endif
#endif

#if defined(__cpp_exceptions)
#define MORTISE_HPP_EXCEPTIONS 1
#endif

namespace mortise
{

/* ---------------------------------------------------------------- errors */

/* The codes of mortise.h. */
enum class errc {
    busy = MORTISE_EBUSY,
    timeout = MORTISE_ETIMEOUT,
    cancelled = MORTISE_ECANCELLED,
    closed = MORTISE_ECLOSED,
    lost = MORTISE_ELOST,
    not_held = MORTISE_ENOTHELD,
    not_owner = MORTISE_ENOTOWNER,
    deadlock = MORTISE_EDEADLOCK,
    forked = MORTISE_EFORKED,
    invalid = MORTISE_EINVALID,
    name = MORTISE_ENAME,
    uri = MORTISE_EURI,
    scheme = MORTISE_ESCHEME,
    permission = MORTISE_EPERMISSION,
    unsafe = MORTISE_EUNSAFE,
    unreachable = MORTISE_EUNREACHABLE,
    store = MORTISE_ESTORE,
    unknown = MORTISE_EUNKNOWN,
    mismatch = MORTISE_EMISMATCH,
    not_supported = MORTISE_ENOTSUPPORTED,
    no_memory = MORTISE_ENOMEM,
    internal = MORTISE_EINTERNAL,
    full = MORTISE_EFULL,
    conflict = MORTISE_ECONFLICT,
    stale = MORTISE_ESTALE,
    no_leader = MORTISE_ENOLEADER,
    disconnected = MORTISE_EDISCONNECTED,
    setup = MORTISE_ESETUP
};

/* The reaction that an error allows: a condition that codes compare with. */
enum class kind {
    busy = MORTISE_KIND_BUSY,
    timeout = MORTISE_KIND_TIMEOUT,
    retry = MORTISE_KIND_RETRY,
    lost = MORTISE_KIND_LOST,
    denied = MORTISE_KIND_DENIED,
    usage = MORTISE_KIND_USAGE,
    config = MORTISE_KIND_CONFIG,
    unknown = MORTISE_KIND_UNKNOWN,
    internal = MORTISE_KIND_INTERNAL
};

} // namespace mortise

namespace std
{
template <> struct is_error_code_enum<mortise::errc> : true_type {
};
template <> struct is_error_condition_enum<mortise::kind> : true_type {
};
} // namespace std

namespace mortise
{

namespace detail
{

class kinds final : public std::error_category
{
  public:
    const char *name() const noexcept override
    {
        return "mortise kind";
    }
    std::string message(int number) const override
    {
        static const char *const names[] = {"none",   "busy",  "timeout", "retry",   "lost",
                                            "denied", "usage", "config",  "unknown", "internal"};
        return number >= 0 && number < 10 ? names[number] : "no such kind";
    }
    static const kinds &instance() noexcept
    {
        static const kinds one;
        return one;
    }
};

class codes final : public std::error_category
{
  public:
    const char *name() const noexcept override
    {
        return "mortise";
    }
    std::string message(int code) const override
    {
        return mortise_error_text(code);
    }
    bool equivalent(int code, const std::error_condition &condition) const noexcept override
    {
        if (condition.category() == kinds::instance())
            return static_cast<int>(mortise_error_kind_of(code)) == condition.value();
        return condition == default_error_condition(code);
    }
    std::error_condition default_error_condition(int code) const noexcept override
    {
        switch (code) {
        case MORTISE_ETIMEOUT:
            return std::errc::timed_out;
        case MORTISE_ECANCELLED:
            return std::errc::operation_canceled;
        case MORTISE_EBUSY:
            return std::errc::device_or_resource_busy;
        case MORTISE_EDEADLOCK:
            return std::errc::resource_deadlock_would_occur;
        case MORTISE_EINVALID:
        case MORTISE_ENAME:
            return std::errc::invalid_argument;
        case MORTISE_EPERMISSION:
            return std::errc::permission_denied;
        case MORTISE_ENOTSUPPORTED:
            return std::errc::not_supported;
        case MORTISE_ENOMEM:
            return std::errc::not_enough_memory;
        default:
            return {code, *this};
        }
    }
    static const codes &instance() noexcept
    {
        static const codes one;
        return one;
    }
};

} // namespace detail

inline const std::error_category &category() noexcept
{
    return detail::codes::instance();
}

inline std::error_code make_error_code(errc code) noexcept
{
    return {static_cast<int>(code), category()};
}

inline std::error_condition make_error_condition(kind value) noexcept
{
    return {static_cast<int>(value), detail::kinds::instance()};
}

/* The particulars of this thread's last call that failed; "" if there is nothing to add. */
inline std::string last_detail()
{
    return mortise_error_detail();
}

/* what() is the text, with the particulars before it. */
class error : public std::system_error
{
  public:
    error(std::error_code code, const std::string &particulars)
        : std::system_error(code, particulars), detail_(particulars)
    {
    }
    const std::string &detail() const noexcept
    {
        return detail_;
    }

  private:
    std::string detail_;
};

#ifdef MORTISE_HPP_EXCEPTIONS
/* The default of each `code`: the call throws. */
inline std::error_code &throws() noexcept
{
    static std::error_code none;
    return none;
}
#define MORTISE_HPP_OR(value) = value
#else
#define MORTISE_HPP_OR(value)
#endif
#define MORTISE_HPP_OR_THROW MORTISE_HPP_OR(throws())

/* The clock of deadlines: it counts suspended time, and nobody can set it. */
struct clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept
    {
        return time_point(duration(mortise_now_ns()));
    }
    static constexpr time_point never() noexcept
    {
        return time_point::max();
    }
};

namespace detail
{

inline std::error_code code_of(int code) noexcept
{
    return code < 0 ? std::error_code(code, category()) : std::error_code();
}

/* Rounded up, so that a wait is never shorter than it was meant. */
template <class Rep, class Period>
std::int64_t to_ms(std::chrono::duration<Rep, Period> time) noexcept
{
    using wide = std::chrono::duration<long double, std::milli>;
    const long double ms = wide(time).count();
    if (ms < 0)
        return -1;
    if (ms >= static_cast<long double>(std::numeric_limits<std::int64_t>::max() / 1000000))
        return -1;
    const auto whole = static_cast<std::int64_t>(ms);
    return whole + (static_cast<long double>(whole) < ms ? 1 : 0);
}

inline std::uint32_t flag(bool set, int value) noexcept
{
    return set ? static_cast<std::uint32_t>(value) : 0;
}

inline std::int32_t to_ms32(std::chrono::milliseconds time) noexcept
{
    return static_cast<std::int32_t>(time.count());
}

/* Callbacks by number: C has the number, so one that is under way while its owner goes keeps its
   function, and one that comes later finds none. */
template <class Function> class registry
{
  public:
    static void *add(Function function)
    {
        auto shared = std::make_shared<Function>(std::move(function));
        const std::lock_guard<std::mutex> guard(one().mutex_);
        const std::uintptr_t key = ++one().last_;
        one().functions_.emplace(key, std::move(shared));
        return reinterpret_cast<void *>(key);
    }
    static void remove(void *key) noexcept
    {
        std::shared_ptr<Function> last; // destroyed outside the lock
        const std::lock_guard<std::mutex> guard(one().mutex_);
        const auto found = one().functions_.find(reinterpret_cast<std::uintptr_t>(key));
        if (found != one().functions_.end()) {
            last = std::move(found->second);
            one().functions_.erase(found);
        }
    }
    template <class... Arguments> static void call(void *key, Arguments &&...arguments)
    {
        std::shared_ptr<Function> function;
        {
            const std::lock_guard<std::mutex> guard(one().mutex_);
            const auto found = one().functions_.find(reinterpret_cast<std::uintptr_t>(key));
            if (found != one().functions_.end())
                function = found->second;
        }
        if (function && *function)
            (*function)(std::forward<Arguments>(arguments)...);
    }

  private:
    static registry &one()
    {
        static registry *const leaked = new registry; // callbacks may outlive static objects
        return *leaked;
    }
    std::mutex mutex_;
    std::uintptr_t last_ = 0;
    std::unordered_map<std::uintptr_t, std::shared_ptr<Function>> functions_;
};

/* A number of a registry, removed with its owner. */
template <class Function> class registration
{
  public:
    registration() = default;
    explicit registration(Function function)
        : key_(function ? registry<Function>::add(std::move(function)) : nullptr)
    {
    }
    registration(registration &&other) noexcept : key_(std::exchange(other.key_, nullptr))
    {
    }
    registration &operator=(registration &&other) noexcept
    {
        std::swap(key_, other.key_);
        return *this;
    }
    ~registration()
    {
        if (key_)
            registry<Function>::remove(key_);
    }
    void *key() const noexcept
    {
        return key_;
    }

  private:
    void *key_ = nullptr;
};

using log_function = std::function<void(std::string_view)>;
using contact_function = std::function<void(std::error_code, std::string_view)>;
using queued_function = std::function<void(std::uint64_t)>;

extern "C" {
inline void mortise_hpp_log(void *key, const char *message) noexcept
{
    registry<log_function>::call(key, std::string_view(message));
}
inline void mortise_hpp_contact(void *key, int error, const char *why) noexcept
{
    registry<contact_function>::call(key, code_of(error), std::string_view(why));
}
inline void mortise_hpp_queued(void *key, std::uint64_t ahead) noexcept
{
    registry<queued_function>::call(key, ahead);
}
}

/* A C client, shared by all objects that were made of it. */
class core
{
  public:
    core() = default;
    core(const core &) = delete;
    core &operator=(const core &) = delete;
    ~core()
    {
        if (open_.exchange(false) && mortise_close(pointer) == MORTISE_EDEADLOCK)
            close_later(pointer);
    }
    int close() noexcept
    {
        if (!open_.exchange(false))
            return MORTISE_OK;
        const int error = mortise_close(pointer);
        if (error == MORTISE_EDEADLOCK)
            open_ = true;
        return error;
    }
    bool is_open() const noexcept
    {
        return open_;
    }
    void opened() noexcept
    {
        open_ = true;
    }

    mortise_client *pointer = nullptr;
    registration<log_function> log;
    registration<contact_function> contact;

  private:
    /* In a callback, which the thread waits for. A foreign loop would go on with what was freed:
       its client stays open. Without memory for a thread it stays open too. */
    static void close_later(mortise_client *client) noexcept
    {
        if (mortise_fd(client) >= 0)
            return;
#ifdef MORTISE_HPP_EXCEPTIONS
        try {
            std::thread(mortise_close, client).detach();
        } catch (const std::system_error &) {
        }
#else
        std::thread(mortise_close, client).detach();
#endif
    }

    std::atomic<bool> open_{false};
};

using shared_core = std::shared_ptr<core>;

/* MORTISE_ECLOSED instead of a call of a client that is closed, or of an object moved from. */
template <class Function, class... Arguments>
int call(const shared_core &owner, Function function, Arguments... arguments) noexcept
{
    return owner && owner->is_open() ? static_cast<int>(function(arguments...)) : MORTISE_ECLOSED;
}

/* Hands an error on as the caller has chosen. `expected`: that the lock is not free is no
   exception. The particulars are those of the call that has just failed on this thread. */
inline int report(int result, std::error_code &code, bool expected = false)
{
#ifdef MORTISE_HPP_EXCEPTIONS
    if (&code == &throws()) {
        if (result < 0 && !(expected && (result == MORTISE_EBUSY || result == MORTISE_ETIMEOUT)))
            throw error(code_of(result), result == MORTISE_ECLOSED ? "" : last_detail());
        return result;
    }
#endif
    static_cast<void>(expected);
    code = code_of(result);
    return result;
}

template <class Function, class... Arguments>
int run(std::error_code &code, const shared_core &owner, Function function, Arguments... arguments)
{
    return report(call(owner, function, arguments...), code);
}

} // namespace detail

/* ----------------------------------------------------------------- holds */

enum class state {
    released = MORTISE_RELEASED,
    held = MORTISE_HELD,
    suspended = MORTISE_SUSPENDED,
    lost = MORTISE_LOST
};

namespace detail
{
using state_function = std::function<void(state)>;
using revoke_function = std::function<void()>;
extern "C" {
inline void mortise_hpp_state(void *key, mortise_hold, mortise_state now) noexcept
{
    registry<state_function>::call(key, static_cast<state>(now));
}
inline void mortise_hpp_revoke(void *key, mortise_hold) noexcept
{
    registry<revoke_function>::call(key);
}
}
} // namespace detail

/* The result of a successful acquire; releases itself. Empty after a move, a release or an error.
 */
class hold
{
  public:
    hold() = default;
    hold(detail::shared_core owner, mortise_hold value) noexcept
        : core_(std::move(owner)), value_(value)
    {
    }
    hold(hold &&other) noexcept
        : core_(std::move(other.core_)),
          value_(std::exchange(other.value_, mortise_hold{nullptr, 0})),
          state_(std::move(other.state_)), revoke_(std::move(other.revoke_))
    {
    }
    hold &operator=(hold &&other) noexcept
    {
        hold(std::move(other)).swap(*this);
        return *this;
    }
    ~hold()
    {
        std::error_code ignored;
        if (core_)
            release(ignored);
    }
    void swap(hold &other) noexcept
    {
        std::swap(core_, other.core_);
        std::swap(value_, other.value_);
        std::swap(state_, other.state_);
        std::swap(revoke_, other.revoke_);
    }

    /* Whether it is held at this instant, by the clock. */
    explicit operator bool() const noexcept
    {
        return held();
    }
    bool held() const noexcept
    {
        return detail::call(core_, mortise_is_held, value_) == 1;
    }
    mortise::state state() const noexcept
    {
        const int now = detail::call(core_, mortise_hold_state, value_);
        return now < 0 ? mortise::state::released : static_cast<mortise::state>(now);
    }
    /* Grows with every grant of the lock: give it to the resource. 0: the store has none. */
    std::uint64_t fence() const noexcept
    {
        return core_ && core_->is_open() ? mortise_hold_fence(value_) : 0;
    }
    /* How long it stays held if the store never answers again; max(): for ever. */
    std::chrono::milliseconds remaining() const noexcept
    {
        const std::int64_t ms = core_ && core_->is_open() ? mortise_hold_remaining_ms(value_) : 0;
        return ms == INT64_MAX ? std::chrono::milliseconds::max() : std::chrono::milliseconds(ms);
    }
    std::uint32_t count() const noexcept
    {
        return core_ && core_->is_open() ? mortise_hold_count(value_) : 0;
    }
    std::string name() const
    {
        return core_ && core_->is_open() ? mortise_hold_name(value_) : "";
    }
    /* Its node, key or row in the store. */
    std::string node(std::error_code &code MORTISE_HPP_OR_THROW) const
    {
        char text[MORTISE_NODE_SIZE] = "";
        const int error = detail::run(code, core_, mortise_hold_node, value_, text, sizeof text);
        return error ? "" : text;
    }
    /* Gives it back, and is empty then. errc::lost: it had been lost. */
    void release(std::error_code &code MORTISE_HPP_OR_THROW)
    {
        const detail::shared_core kept = core_; // until the particulars have been read
        const int error = detail::call(kept, mortise_release, value_);
        if (error != MORTISE_ENOTOWNER && error != MORTISE_EFORKED)
            reset();
        detail::report(error, code);
    }
    /* Of a write side: goes on as a reader. */
    void downgrade(std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, core_, mortise_downgrade, value_);
    }
    /* Asks the store. */
    template <class Rep, class Period>
    void verify(std::chrono::duration<Rep, Period> timeout,
                std::error_code &code MORTISE_HPP_OR_THROW) const
    {
        detail::run(code, core_, mortise_verify, value_, detail::to_ms(timeout));
    }
    /* errc::lost or errc::not_held unless it is held at this instant. */
    void check(std::error_code &code MORTISE_HPP_OR_THROW) const
    {
        const bool lost = state() == mortise::state::lost;
        detail::report(held() ? MORTISE_OK : lost ? MORTISE_ELOST : MORTISE_ENOTHELD, code);
    }
    /* function(state) at each change, on a thread of the client's; an empty one: none. */
    void on_state(detail::state_function function, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::registration<detail::state_function> made(std::move(function));
        const int error = detail::run(code, core_, mortise_on_lost, value_,
                                      made.key() ? detail::mortise_hpp_state : nullptr, made.key());
        if (!error)
            state_ = std::move(made);
    }
    /* function() when it is lost; else as on_state, whose place it takes. An empty one: none. */
    void on_lost(std::function<void()> function, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        if (!function)
            return on_state(nullptr, code);
        on_state(
            [function = std::move(function)](mortise::state now) {
                if (now == mortise::state::lost)
                    function();
            },
            code);
    }
    /* function() when an operator requests that the lock be given up. */
    void on_revoke(detail::revoke_function function, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::registration<detail::revoke_function> made(std::move(function));
        const int error =
            detail::run(code, core_, mortise_on_revoke, value_,
                        made.key() ? detail::mortise_hpp_revoke : nullptr, made.key());
        if (!error)
            revoke_ = std::move(made);
    }
    /* Leaves the lock taken, without a holder; lock::adopt takes it by the token. */
    std::string detach(std::error_code &code MORTISE_HPP_OR_THROW)
    {
        char token[MORTISE_TOKEN_SIZE] = "";
        const int error = detail::run(code, core_, mortise_detach, value_, token);
        if (!error)
            reset();
        return token;
    }
    mortise_hold native() const noexcept
    {
        return value_;
    }

  private:
    void reset() noexcept
    {
        state_ = {};
        revoke_ = {};
        value_ = mortise_hold{nullptr, 0};
        core_.reset();
    }

    detail::shared_core core_;
    mortise_hold value_{nullptr, 0};
    detail::registration<detail::state_function> state_;
    detail::registration<detail::revoke_function> revoke_;
};

/* ----------------------------------------------------------------- locks */

/* Of a handle; see mortise_lock_options. */
struct lock_options {
    std::uint64_t owner = MORTISE_OWNER_THREAD;
    bool wait_for_self = false;
    std::uint32_t permits = 1;
    std::chrono::milliseconds max_hold{0};
    std::chrono::milliseconds linger{0};
    std::chrono::milliseconds lock_delay{0};
    std::function<void(std::uint64_t)> queued{};
};

/* The end of an asynchronous acquire, on the client's thread. */
using acquired_function = std::function<void(std::error_code, hold)>;

namespace detail
{

/* A C handle, freed once; asynchronous acquires share it until they have called back. */
struct handle {
    shared_core owner;
    mortise_lock *pointer = nullptr;
    registration<queued_function> queued;
    handle() = default;
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    ~handle()
    {
        if (pointer && owner->is_open())
            mortise_lock_free(pointer);
    }
};

struct acquiring {
    std::shared_ptr<handle> of;
    acquired_function then;
};

extern "C" {
inline void mortise_hpp_acquired(void *argument, int error, mortise_hold value) noexcept
{
    const std::unique_ptr<acquiring> wait(static_cast<acquiring *>(argument));
    wait->then(code_of(error), error ? hold() : hold(wait->of->owner, value));
}
}

#ifdef MORTISE_HPP_COROUTINES

using post_function = std::function<void(std::function<void()>)>;

/* The awaitable of `co_await lock.async_acquire()`. A coroutine that is destroyed meanwhile leaves
   nothing held. */
class acquire_awaiter
{
    struct shared {
        std::mutex mutex;
        std::coroutine_handle<> waiter;
        std::error_code code;
        std::string particulars;
        hold granted;
        post_function post;
    };

  public:
    acquire_awaiter(std::shared_ptr<handle> of, std::int64_t deadline, std::error_code *code)
        : of_(std::move(of)), deadline_(deadline), code_(code), shared_(std::make_shared<shared>())
    {
    }
    acquire_awaiter(acquire_awaiter &&) = default;
    ~acquire_awaiter()
    {
        if (shared_) {
            const std::lock_guard<std::mutex> guard(shared_->mutex);
            shared_->waiter = nullptr;
        }
    }
    /* post(resume) calls resume() where the coroutine is to go on. */
    acquire_awaiter &&on(post_function post) &&
    {
        shared_->post = std::move(post);
        return std::move(*this);
    }
    bool await_ready() const noexcept
    {
        return false;
    }
    bool await_suspend(std::coroutine_handle<> waiter)
    {
        shared_->waiter = waiter;
        const auto kept = shared_; // the coroutine may go on, and end, before this returns
        auto wait = std::make_unique<acquiring>();
        wait->of = of_;
        wait->then = [kept](std::error_code code, hold granted) {
            resume(kept, code, std::move(granted));
        };
        const auto of = of_ ? of_ : std::make_shared<handle>(); // of a lock moved from: no client
        const int error = call(of->owner, mortise_acquire_async, of->pointer, deadline_,
                               mortise_hpp_acquired, static_cast<void *>(wait.get()), nullptr);
        if (error == MORTISE_OK) {
            wait.release();
            return true;
        }
        kept->code = code_of(error);
        kept->particulars = error == MORTISE_ECLOSED ? std::string() : last_detail();
        return false;
    }
    hold await_resume()
    {
#ifdef MORTISE_HPP_EXCEPTIONS
        if (code_ == &throws() && shared_->code)
            throw error(shared_->code, shared_->particulars);
        if (code_ != &throws())
#endif
            *code_ = shared_->code;
        return std::move(shared_->granted);
    }

  private:
    static void resume(const std::shared_ptr<shared> &kept, std::error_code code, hold granted)
    {
        std::unique_lock<std::mutex> guard(kept->mutex);
        if (!kept->waiter)
            return; // nobody waits: the hold releases itself
        kept->code = code;
        if (code)
            kept->particulars = last_detail();
        kept->granted = std::move(granted);
        const auto go = [kept] {
            std::coroutine_handle<> waiter;
            {
                const std::lock_guard<std::mutex> inner(kept->mutex);
                waiter = std::exchange(kept->waiter, nullptr);
            }
            if (waiter)
                waiter.resume();
        };
        const auto post = kept->post;
        guard.unlock();
        if (post)
            post(go);
        else
            go();
    }

    std::shared_ptr<handle> of_;
    std::int64_t deadline_;
    std::error_code *code_;
    std::shared_ptr<shared> shared_;
};

#endif

} // namespace detail

/* A lock by name; client makes it. Move-only, and empty after a move. */
class lock
{
  public:
    lock() = default;
    explicit lock(std::shared_ptr<detail::handle> made) noexcept : handle_(std::move(made))
    {
    }
    lock(lock &&) noexcept = default;
    lock &operator=(lock &&) noexcept = default;

    /* Waits for ever. */
    hold acquire(std::error_code &code MORTISE_HPP_OR_THROW)
    {
        return take(code, mortise_acquire);
    }
    /* An empty hold, and errc::busy in `code`, if it is not free now. */
    hold try_acquire(std::error_code &code MORTISE_HPP_OR_THROW)
    {
        return take(code, mortise_try_acquire);
    }
    /* An empty hold, and errc::timeout in `code`, after this time; zero: as try_acquire. */
    template <class Rep, class Period>
    hold acquire_for(std::chrono::duration<Rep, Period> time,
                     std::error_code &code MORTISE_HPP_OR_THROW)
    {
        return take(code, mortise_acquire_for, detail::to_ms(time));
    }
    hold acquire_until(clock::time_point deadline, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        return take(code, mortise_acquire_until,
                    static_cast<std::int64_t>(deadline.time_since_epoch().count()));
    }
    /* Acquires by a ticket that hold::detach left. */
    hold adopt(const std::string &token, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        mortise_hold value{nullptr, 0};
        const int error =
            detail::run(code, owner(), mortise_adopt, pointer(), token.c_str(), &value);
        return error ? hold() : hold(owner(), value);
    }
    /* then(code, hold) on the client's thread, once, never inside this call; last_detail() in it
       has the particulars. Not if code is set. */
    void async_acquire(clock::time_point deadline, acquired_function then,
                       std::error_code &code MORTISE_HPP_OR_THROW)
    {
        auto wait = std::make_unique<detail::acquiring>();
        wait->of = handle_;
        wait->then = std::move(then);
        const int error =
            detail::run(code, owner(), mortise_acquire_async, pointer(),
                        static_cast<std::int64_t>(deadline.time_since_epoch().count()),
                        detail::mortise_hpp_acquired, static_cast<void *>(wait.get()), nullptr);
        if (!error)
            wait.release();
    }
#ifdef MORTISE_HPP_COROUTINES
    detail::acquire_awaiter async_acquire(clock::time_point deadline MORTISE_HPP_OR(clock::never()),
                                          std::error_code &code MORTISE_HPP_OR_THROW)
    {
        return detail::acquire_awaiter(handle_, deadline.time_since_epoch().count(), &code);
    }
#endif
    /* Ends all acquires that wait by this handle: errc::cancelled. */
    void cancel_waiters() noexcept
    {
        detail::call(owner(), mortise_cancel_waiters, pointer());
    }
    std::string name() const
    {
        return handle_ && handle_->owner->is_open() ? mortise_lock_name(handle_->pointer) : "";
    }
    /* Of a semaphore: how many permits are in use. */
    std::uint32_t permits(std::error_code &code MORTISE_HPP_OR_THROW)
    {
        std::uint32_t number = 0;
        detail::run(code, owner(), mortise_semaphore_get_permits, pointer(), &number);
        return number;
    }
    template <class Rep, class Period>
    void set_permits(std::uint32_t number, std::chrono::duration<Rep, Period> time,
                     std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, owner(), mortise_semaphore_set_permits, pointer(), number,
                    detail::to_ms(time));
    }
    mortise_lock *native() const noexcept
    {
        return pointer();
    }
    const detail::shared_core &owner() const noexcept
    {
        static const detail::shared_core none;
        return handle_ ? handle_->owner : none;
    }

  private:
    mortise_lock *pointer() const noexcept
    {
        return handle_ ? handle_->pointer : nullptr;
    }
    template <class Function, class... Arguments>
    hold take(std::error_code &code, Function function, Arguments... arguments)
    {
        mortise_hold value{nullptr, 0};
        const int error = detail::report(
            detail::call(owner(), function, pointer(), arguments..., &value), code, true);
        return error ? hold() : hold(owner(), value);
    }

    std::shared_ptr<detail::handle> handle_;
};

/* The sides of a read/write lock. */
struct read_write_lock {
    lock read, write;
};

/* All of these locks or none, of any kinds and clients; the holds are in the order of the locks.
   None if one is not free in time. */
template <class Rep, class Period>
std::vector<hold> acquire_all(const std::vector<const lock *> &locks,
                              std::chrono::duration<Rep, Period> time,
                              std::error_code &code MORTISE_HPP_OR_THROW)
{
    std::vector<mortise_lock *> pointers;
    std::vector<mortise_hold> values(locks.size());
    std::vector<hold> made;
    int error = MORTISE_OK;
    for (const lock *one : locks) {
        pointers.push_back(one->native());
        if (!one->owner() || !one->owner()->is_open())
            error = MORTISE_ECLOSED;
    }
    made.reserve(locks.size());
    if (!error)
        error = mortise_acquire_all(pointers.data(), pointers.size(), detail::to_ms(time),
                                    values.data());
    for (std::size_t i = 0; !error && i < locks.size(); i++)
        made.emplace_back(locks[i]->owner(), values[i]);
    detail::report(error, code, true);
    return made;
}

/* -------------------------------------------------------------- elections */

struct leader {
    std::string value;
    std::uint64_t fence = 0; /* 0: nobody leads */
};

struct election_options {
    std::string value{};
    std::function<void(std::uint64_t)> elected{}, deposed{};
};

namespace detail
{
struct terms {
    std::function<void(std::uint64_t)> elected, deposed;
};
using term_function = std::function<void(bool, std::uint64_t)>;
using leader_function = std::function<void(const leader &)>;

inline leader leader_of(const mortise_leader &from)
{
    return {std::string(reinterpret_cast<const char *>(from.value), from.fence ? from.size : 0),
            from.fence};
}

extern "C" {
inline void mortise_hpp_elected(void *key, std::uint64_t fence) noexcept
{
    registry<term_function>::call(key, true, fence);
}
inline void mortise_hpp_deposed(void *key, std::uint64_t fence) noexcept
{
    registry<term_function>::call(key, false, fence);
}
inline void mortise_hpp_leader(void *key, const mortise_leader *now) noexcept
{
    registry<leader_function>::call(key, leader_of(*now));
}
}
} // namespace detail

/* A candidate; client makes it. Resigns at its end, and nothing is called afterwards. In a
   callback, where C cannot wait, it resigns too, and C's part is freed with the client. */
class election
{
  public:
    election() = default;
    election(election &&other) noexcept
        : core_(std::move(other.core_)), pointer_(std::exchange(other.pointer_, nullptr)),
          terms_(std::move(other.terms_)), observer_(std::move(other.observer_))
    {
    }
    election &operator=(election &&other) noexcept
    {
        std::swap(core_, other.core_);
        std::swap(pointer_, other.pointer_);
        std::swap(terms_, other.terms_);
        std::swap(observer_, other.observer_);
        return *this;
    }
    ~election()
    {
        if (detail::call(core_, mortise_election_free, pointer_) != MORTISE_EDEADLOCK)
            return;
        mortise_election_observe(pointer_, nullptr, nullptr);
        mortise_election_resign(pointer_);
    }
    /* Waits until it leads, at most so long; errc::timeout, errc::busy (zero). */
    template <class Rep, class Period>
    void campaign(std::chrono::duration<Rep, Period> time,
                  std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, core_, mortise_election_campaign, pointer_, detail::to_ms(time));
    }
    void resign(std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, core_, mortise_election_resign, pointer_);
    }
    void proclaim(std::string_view value, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, core_, mortise_election_proclaim, pointer_,
                    static_cast<const void *>(value.data()), value.size());
    }
    /* Reads from the store who leads; errc::no_leader. */
    mortise::leader leader(std::error_code &code MORTISE_HPP_OR_THROW) const
    {
        const auto found = std::make_unique<mortise_leader>();
        const int error = detail::run(code, core_, mortise_election_leader, pointer_, found.get());
        return error ? mortise::leader() : detail::leader_of(*found);
    }
    /* function(leader) now and at each change; an empty one ends it. */
    void observe(detail::leader_function function, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::registration<detail::leader_function> made(std::move(function));
        const int error =
            detail::run(code, core_, mortise_election_observe, pointer_,
                        made.key() ? detail::mortise_hpp_leader : nullptr, made.key());
        if (!error)
            observer_ = std::move(made);
    }
    bool is_leader() const noexcept
    {
        return detail::call(core_, mortise_election_is_leader, pointer_) == 1;
    }
    std::uint64_t fence() const noexcept
    {
        return core_ && core_->is_open() ? mortise_election_fence(pointer_) : 0;
    }

  private:
    friend class client;
    detail::shared_core core_;
    mortise_election *pointer_ = nullptr;
    detail::registration<detail::term_function> terms_;
    detail::registration<detail::leader_function> observer_;
};

/* ------------------------------------------------------------------ cells */

struct cell_value {
    std::string value;
    std::uint64_t version = 0; /* 0: there is no such cell */
    std::uint64_t fence = 0;
};

namespace detail
{
struct change {
    const std::function<std::string(const std::string &)> &function;
#ifdef MORTISE_HPP_EXCEPTIONS
    std::exception_ptr fault{};
#endif
    int apply(mortise_cell &cell)
    {
        const std::string value =
            function(std::string(reinterpret_cast<const char *>(cell.value), cell.size));
        if (value.size() > MORTISE_VALUE_MAX)
            return MORTISE_EINVALID;
        value.copy(reinterpret_cast<char *>(cell.value), value.size());
        cell.size = value.size();
        return 0;
    }
};

extern "C" {
inline int mortise_hpp_change(void *argument, mortise_cell *cell) noexcept
{
    auto *under_way = static_cast<change *>(argument);
#ifdef MORTISE_HPP_EXCEPTIONS
    try {
        return under_way->apply(*cell);
    } catch (...) {
        under_way->fault = std::current_exception();
        return MORTISE_EINTERNAL;
    }
#else
    return under_way->apply(*cell);
#endif
}
}
} // namespace detail

/* A value with a version; client makes it. */
class cell
{
  public:
    cell(detail::shared_core owner, std::string name)
        : core_(std::move(owner)), name_(std::move(name))
    {
    }
    cell_value get(std::error_code &code MORTISE_HPP_OR_THROW) const
    {
        const auto found = std::make_unique<mortise_cell>();
        const int error = detail::run(code, core_, mortise_cell_get, client(), name(), found.get());
        return error ? cell_value()
                     : cell_value{
                           std::string(reinterpret_cast<const char *>(found->value), found->size),
                           found->version, found->fence};
    }
    /* Writes if it has this version yet (0: makes it); the new version. errc::conflict. */
    std::uint64_t compare_and_set(std::uint64_t version, std::string_view value,
                                  std::error_code &code MORTISE_HPP_OR_THROW)
    {
        std::uint64_t written = 0;
        detail::run(code, core_, mortise_cell_cas, client(), name(), version,
                    static_cast<const void *>(value.data()), value.size(), std::uint64_t{0},
                    &written);
        return written;
    }
    /* The same under a hold: errc::stale once it is superseded. */
    std::uint64_t compare_and_set(std::uint64_t version, std::string_view value, const hold &by,
                                  std::error_code &code MORTISE_HPP_OR_THROW)
    {
        std::uint64_t written = 0;
        detail::run(code, core_, mortise_cell_cas_held, client(), name(), version,
                    static_cast<const void *>(value.data()), value.size(), by.native(), &written);
        return written;
    }
    void erase(std::uint64_t version, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, core_, mortise_cell_delete, client(), name(), version, std::uint64_t{0});
    }
    void erase(std::uint64_t version, const hold &by, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, core_, mortise_cell_delete_held, client(), name(), version, by.native());
    }
    /* Reads, changes and writes, again while others write; for at most so long. */
    template <class Rep, class Period>
    void update(const std::function<std::string(const std::string &)> &function,
                std::chrono::duration<Rep, Period> time, std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::change under_way{function};
        const int error =
            detail::call(core_, mortise_cell_update, client(), name(), detail::mortise_hpp_change,
                         static_cast<void *>(&under_way), std::uint64_t{0}, detail::to_ms(time));
        rethrow(under_way);
        detail::report(error, code);
    }
    template <class Rep, class Period>
    void update(const std::function<std::string(const std::string &)> &function,
                std::chrono::duration<Rep, Period> time, const hold &by,
                std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::change under_way{function};
        const int error = detail::call(core_, mortise_cell_update_held, client(), name(),
                                       detail::mortise_hpp_change, static_cast<void *>(&under_way),
                                       by.native(), detail::to_ms(time));
        rethrow(under_way);
        detail::report(error, code);
    }

  private:
    mortise_client *client() const noexcept
    {
        return core_ ? core_->pointer : nullptr;
    }
    const char *name() const noexcept
    {
        return name_.c_str();
    }
    static void rethrow(const detail::change &under_way)
    {
#ifdef MORTISE_HPP_EXCEPTIONS
        if (under_way.fault)
            std::rethrow_exception(under_way.fault);
#else
        static_cast<void>(under_way);
#endif
    }

    detail::shared_core core_;
    std::string name_;
};

/* ---------------------------------------------------------------- client */

/* See mortise_client_options. */
struct client_options {
    bool strict = false, short_lived = false, tell_process = false, foreign_loop = false;
    std::chrono::milliseconds budget{0};
    std::int32_t budget_count = 0;
    std::chrono::milliseconds timeout{0};
    std::chrono::milliseconds give_up{0};
    std::string label{};
    std::function<void(std::string_view)> log{};
    std::function<void(std::error_code, std::string_view)> contact{};
};

/* One ticket in a queue; see mortise_entry. */
struct entry {
    std::string name, kind, label, host, node;
    std::uint64_t fence, weight, capacity;
    std::uint32_t place;
    std::int64_t pid;
    std::chrono::system_clock::time_point since;
    std::chrono::milliseconds delay;
    bool detached;
    std::uint64_t id;
};

namespace detail
{
extern "C" {
inline int mortise_hpp_entry(void *argument, const mortise_entry *from) noexcept
{
    using namespace std::chrono;
    static_cast<std::vector<entry> *>(argument)->push_back(
        {from->name, from->kind, from->label, from->host, from->node, from->fence, from->weight,
         from->capacity, from->place, from->pid,
         system_clock::time_point(milliseconds(from->since_wall_ms)), milliseconds(from->delay_ms),
         from->detached != 0, from->id});
    return 0;
}
}
} // namespace detail

/* A store, opened. Move-only. The store is closed with the last of the client and all that it made;
   what is held then is released. */
class client
{
  public:
    client(client &&) noexcept = default;
    client &operator=(client &&) noexcept = default;

    /* An empty url: $MORTISE_URL, or a file of this user. */
    explicit client(const std::string &url MORTISE_HPP_OR(std::string()),
                    const client_options &options MORTISE_HPP_OR(client_options()),
                    std::error_code &code MORTISE_HPP_OR_THROW)
        : core_(std::make_shared<detail::core>())
    {
        mortise_client_options given{};
        given.size = sizeof given;
        given.flags = detail::flag(options.strict, MORTISE_STRICT) |
                      detail::flag(options.short_lived, MORTISE_SHORT_LIVED) |
                      detail::flag(options.tell_process, MORTISE_TELL_PROCESS) |
                      detail::flag(options.foreign_loop, MORTISE_FOREIGN_LOOP);
        given.budget_ms = detail::to_ms32(options.budget);
        given.budget_count = options.budget_count;
        given.timeout_ms = detail::to_ms32(options.timeout);
        given.give_up_ms = options.give_up.count();
        given.label = options.label.empty() ? nullptr : options.label.c_str();
        core_->log = detail::registration<detail::log_function>(options.log);
        core_->contact = detail::registration<detail::contact_function>(options.contact);
        given.log = core_->log.key() ? detail::mortise_hpp_log : nullptr;
        given.log_argument = core_->log.key();
        given.contact = core_->contact.key() ? detail::mortise_hpp_contact : nullptr;
        given.contact_argument = core_->contact.key();
        const int error =
            mortise_open(url.empty() ? nullptr : url.c_str(), &given, &core_->pointer);
        if (!error)
            core_->opened();
        detail::report(error, code);
    }
    /* Releases what is held, ends waits with errc::closed. No other call may run. */
    void close(std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::report(core_ ? core_->close() : MORTISE_OK, code);
    }
    std::string url() const
    {
        return core_ && core_->is_open() ? mortise_url(core_->pointer) : "";
    }
    lock mutex(const std::string &name, const lock_options &options MORTISE_HPP_OR(lock_options()),
               std::error_code &code MORTISE_HPP_OR_THROW)
    {
        return one(mortise_mutex_new, name, options, code);
    }
    lock semaphore_mutex(const std::string &name,
                         const lock_options &options MORTISE_HPP_OR(lock_options()),
                         std::error_code &code MORTISE_HPP_OR_THROW)
    {
        return one(mortise_semaphore_mutex_new, name, options, code);
    }
    lock exclusive(const std::string &name,
                   const lock_options &options MORTISE_HPP_OR(lock_options()),
                   std::error_code &code MORTISE_HPP_OR_THROW)
    {
        return one(mortise_exclusive_new, name, options, code);
    }
    lock semaphore(const std::string &name, std::uint32_t permits,
                   const lock_options &options MORTISE_HPP_OR(lock_options()),
                   std::error_code &code MORTISE_HPP_OR_THROW)
    {
        auto made = std::make_shared<detail::handle>();
        const mortise_lock_options given = prepare(*made, options);
        const int error = detail::run(code, core_, mortise_semaphore_new, native(), c_name(name),
                                      permits, &given, &made->pointer);
        return error ? lock() : lock(std::move(made));
    }
    read_write_lock read_write(const std::string &name,
                               const lock_options &options MORTISE_HPP_OR(lock_options()),
                               std::error_code &code MORTISE_HPP_OR_THROW)
    {
        auto read = std::make_shared<detail::handle>(), write = std::make_shared<detail::handle>();
        const mortise_lock_options given = prepare(*read, options);
        write->owner = core_;
        const int error = detail::run(code, core_, mortise_read_write_new, native(), c_name(name),
                                      &given, &read->pointer, &write->pointer);
        if (error)
            return {};
        return {lock(std::move(read)), lock(std::move(write))};
    }
    mortise::election election(const std::string &name,
                               const election_options &options MORTISE_HPP_OR(election_options()),
                               std::error_code &code MORTISE_HPP_OR_THROW)
    {
        mortise::election made;
        made.core_ = core_;
        made.terms_ = detail::registration<detail::term_function>(
            [terms = detail::terms{options.elected, options.deposed}](bool begins,
                                                                      std::uint64_t fence) {
                const auto &function = begins ? terms.elected : terms.deposed;
                if (function)
                    function(fence);
            });
        mortise_election_options given{};
        given.size = sizeof given;
        given.value = options.value.data();
        given.value_size = options.value.size();
        given.elected = detail::mortise_hpp_elected;
        given.deposed = detail::mortise_hpp_deposed;
        given.argument = made.terms_.key();
        detail::run(code, core_, mortise_election_new, native(), c_name(name), &given,
                    &made.pointer_);
        return made;
    }
    mortise::cell cell(const std::string &name) const
    {
        return {core_, c_name(name)};
    }
    /* Holders and waiters of a lock, or of all locks if the name is empty. */
    std::vector<entry> list(const std::string &name MORTISE_HPP_OR(std::string()),
                            std::error_code &code MORTISE_HPP_OR_THROW) const
    {
        std::vector<entry> found;
        detail::run(code, core_, mortise_list, native(), name.empty() ? nullptr : c_name(name),
                    detail::mortise_hpp_entry, static_cast<void *>(&found));
        return found;
    }
    void revoke(const std::string &name, std::uint64_t fence MORTISE_HPP_OR(0),
                std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, core_, mortise_revoke, native(), c_name(name), fence);
    }
    void break_ticket(const std::string &name, std::uint64_t fence,
                      std::error_code &code MORTISE_HPP_OR_THROW)
    {
        detail::run(code, core_, mortise_break, native(), c_name(name), fence);
    }
    std::string server(std::error_code &code MORTISE_HPP_OR_THROW) const
    {
        char text[256] = "";
        detail::run(code, core_, mortise_server, native(), text, sizeof text);
        return text;
    }
    /* All bits zero once it is closed. */
    mortise_capabilities capabilities() const noexcept
    {
        mortise_capabilities found{};
        found.size = sizeof found;
        detail::call(core_, mortise_get_capabilities, native(), &found);
        return found;
    }
    mortise_stats stats() const noexcept
    {
        mortise_stats found{};
        found.size = sizeof found;
        detail::call(core_, mortise_get_stats, native(), &found);
        return found;
    }
    mortise_client *native() const noexcept
    {
        return core_ ? core_->pointer : nullptr;
    }

  private:
    /* A name that C would end in its middle becomes one that it refuses. */
    static const char *c_name(const std::string &name) noexcept
    {
        return name.find('\0') == std::string::npos ? name.c_str() : "";
    }
    mortise_lock_options prepare(detail::handle &made, const lock_options &options) const
    {
        mortise_lock_options given{};
        made.owner = core_;
        made.queued = detail::registration<detail::queued_function>(options.queued);
        given.size = sizeof given;
        given.owner = options.owner;
        given.flags = detail::flag(options.wait_for_self, MORTISE_WAIT_FOR_SELF);
        given.permits = options.permits;
        given.queued = made.queued.key() ? detail::mortise_hpp_queued : nullptr;
        given.queued_argument = made.queued.key();
        given.max_hold_ms = options.max_hold.count();
        given.linger_ms = options.linger.count();
        given.lock_delay_ms = options.lock_delay.count();
        return given;
    }
    template <class Function>
    lock one(Function function, const std::string &name, const lock_options &options,
             std::error_code &code)
    {
        auto made = std::make_shared<detail::handle>();
        const mortise_lock_options given = prepare(*made, options);
        const int error =
            detail::run(code, core_, function, native(), c_name(name), &given, &made->pointer);
        return error ? lock() : lock(std::move(made));
    }

    detail::shared_core core_;
};

} // namespace mortise

#endif

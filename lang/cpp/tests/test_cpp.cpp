/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise.hpp on one store: test_cpp URL. Prints a TAP line a case.
 *
 * A case is a function that throws what it finds wrong. A wait that should end has LIMIT; a wait
 * that should not end is ended by an event of the case's own.
 */
#include <mortise.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;

namespace
{

constexpr auto LIMIT = 60s;
std::string store;

[[noreturn]] void fail(const char *text, int line)
{
    throw std::runtime_error("line " + std::to_string(line) + ": " + text);
}
#define CHECK(truth)                \
    do {                            \
        if (!(truth))               \
            fail(#truth, __LINE__); \
    } while (false)
/* The statement throws an error that equals `wanted`. */
#define CHECK_THROWS(wanted, statement)                   \
    do {                                                  \
        bool thrown = false;                              \
        try {                                             \
            statement;                                    \
        } catch (const mortise::error &fault) {           \
            thrown = true;                                \
            if (fault.code() != (wanted))                 \
                fail(fault.what(), __LINE__);             \
        }                                                 \
        if (!thrown)                                      \
            fail(#statement " throws nothing", __LINE__); \
    } while (false)

/* One event, for callbacks. */
class event
{
  public:
    void set()
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        set_ = true;
        changed_.notify_all();
    }
    bool wait()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        return changed_.wait_for(guard, LIMIT, [this] { return set_; });
    }

    bool is_set()
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        return set_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool set_ = false;
};

template <class Condition> bool comes_true(Condition condition)
{
    const auto end = std::chrono::steady_clock::now() + LIMIT;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::sleep_for(5ms);
    }
    return true;
}

std::string fresh(const char *what)
{
    static int number = 0;
    return std::string(what) + "-" + std::to_string(++number);
}

bool queued(mortise::client &client, const std::string &name, std::size_t count)
{
    return comes_true([&] { return client.list(name).size() == count; });
}

/* With a session: without one an acquire whose time is over says so, and not errc::timeout. */
mortise::client open_client(const char *label = "test")
{
    mortise::client_options options;
    options.label = label;
    options.log = [](std::string_view) {};
    mortise::client client(store, options);
    client.mutex(fresh("session")).acquire();
    return client;
}

/* ------------------------------------------------------------------ locks */

void hold_ends_with_its_block()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("block");
    mortise::lock lock = client.mutex(name), theirs = other.mutex(name);
    std::uint64_t fence = 0;
    {
        const mortise::hold hold = lock.acquire_for(LIMIT);
        CHECK(hold && hold.held() && hold.state() == mortise::state::held);
        CHECK(hold.remaining() > 0ms && hold.count() == 1 && hold.name() == name);
        CHECK(hold.node().find(name) != std::string::npos);
        hold.verify(LIMIT);
        hold.check();
        fence = hold.fence();
        CHECK(fence > 0 && !theirs.try_acquire());
    }
    const mortise::hold later = theirs.acquire_for(LIMIT);
    CHECK(later && later.fence() > fence);
}

void hold_moves()
{
    mortise::client client = open_client();
    const std::string name = fresh("move");
    mortise::lock lock = client.mutex(name);
    mortise::hold first = lock.acquire();
    mortise::hold second = std::move(first);
    CHECK(!first && second); // NOLINT: what is moved from is empty
    first.release(*std::make_unique<std::error_code>());
    mortise::hold third;
    third = std::move(second);
    CHECK(third && third.fence() > 0);
    third = lock.acquire(); // nests, and releases the count before
    CHECK(third.count() == 1);
    third.release();
    CHECK(!third && queued(client, name, 0));
    static_assert(!std::is_copy_constructible<mortise::hold>::value, "a hold is one object's");
    static_assert(std::is_nothrow_move_constructible<mortise::hold>::value, "");
}

void lock_that_is_not_free_gives_an_empty_hold()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("busy");
    mortise::lock lock = client.mutex(name), theirs = other.mutex(name);
    const mortise::hold hold = lock.acquire();
    CHECK(!theirs.try_acquire() && !theirs.acquire_for(20ms) &&
          !theirs.acquire_until(mortise::clock::now() + 20ms));
    std::error_code code;
    CHECK(!theirs.try_acquire(code) && code == mortise::errc::busy);
    CHECK(!theirs.acquire_for(20ms, code) && code == mortise::errc::timeout);
    CHECK(mortise::last_detail().find(name) != std::string::npos);
    CHECK(queued(client, name, 1));
}

void errors_have_a_category()
{
    const std::error_code code = mortise::errc::timeout;
    CHECK(code.category() == mortise::category() &&
          std::strcmp(code.category().name(), "mortise") == 0);
    CHECK(code.message() == mortise_error_text(MORTISE_ETIMEOUT));
    CHECK(code == mortise::kind::timeout && code != mortise::kind::retry);
    CHECK(code == std::errc::timed_out && code != std::errc::invalid_argument);
    CHECK(std::error_code(mortise::errc::name) == std::errc::invalid_argument);
    CHECK(std::error_code(mortise::errc::stale) == mortise::kind::lost);
    CHECK(std::error_condition(mortise::kind::retry).message() == "retry");
#define EACH(name, number, kind_, text)                                      \
    CHECK(std::error_code(number, mortise::category()).message() == (text)); \
    CHECK(std::error_code(number, mortise::category()) ==                    \
          static_cast<mortise::kind>(MORTISE_KIND_##kind_));
    MORTISE_ERROR_MAP(EACH)
#undef EACH
}

void misuse_is_an_error_with_the_librarys_text()
{
    mortise::client client = open_client();
    CHECK_THROWS(mortise::errc::name, client.mutex(""));
    CHECK_THROWS(mortise::errc::name, client.mutex(std::string("a\0b", 3)));
    CHECK_THROWS(mortise::errc::name, client.mutex(std::string(256, 'x')));
    CHECK_THROWS(mortise::errc::invalid, client.semaphore("none", 0));
    CHECK_THROWS(mortise::kind::config, mortise::client("nonsense:"));
    mortise::lock lock = client.semaphore_mutex(fresh("misuse"));
    mortise::hold hold = lock.acquire();
    CHECK_THROWS(mortise::errc::deadlock, lock.acquire());
    CHECK_THROWS(mortise::errc::invalid, hold.downgrade());
    hold.release();
    CHECK_THROWS(mortise::errc::closed, hold.release());
    std::error_code code;
    const mortise::client none("nonsense:", mortise::client_options(), code);
    CHECK(code == mortise::errc::scheme && none.url().empty());
    try {
        lock.adopt("no token");
        CHECK(false);
    } catch (const mortise::error &fault) {
        CHECK(std::string(fault.what()).find(mortise_error_text(MORTISE_EINVALID)) !=
              std::string::npos);
        CHECK(!fault.detail().empty());
    }
}

void other_thread_cannot_release_but_of_nobodys()
{
    mortise::client client = open_client();
    mortise::hold mine = client.mutex(fresh("mine")).acquire();
    std::error_code code;
    std::thread([&] { mine.release(code); }).join();
    CHECK(code == mortise::errc::not_owner && mine);
    mine.release();
    mortise::lock_options options;
    options.owner = MORTISE_OWNER_NOBODY;
    mortise::hold nobodys = client.mutex(fresh("nobodys"), options).acquire();
    std::thread([&] { nobodys.release(code); }).join();
    CHECK(!code && !nobodys);
}

void threads_of_two_clients_exclude_each_other()
{
    mortise::client clients[] = {open_client(), open_client()};
    const std::string name = fresh("count");
    int count = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            mortise::lock lock = clients[i % 2].mutex(name);
            for (int turn = 0; turn < 25; turn++) {
                const mortise::hold hold = lock.acquire();
                const int before = count;
                std::this_thread::yield();
                count = before + 1;
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    CHECK(count == 100);
}

void semaphore_has_permits()
{
    mortise::client client = open_client();
    const std::string name = fresh("semaphore");
    mortise::lock one = client.semaphore(name, 3);
    mortise::lock_options options;
    options.permits = 2;
    mortise::lock two = client.semaphore(name, 3, options);
    const mortise::hold first = two.acquire();
    mortise::hold second = one.acquire();
    CHECK(first && second && !one.try_acquire());
    CHECK_THROWS(mortise::errc::mismatch, open_client().semaphore(name, 4).acquire());
    second.release();
    one.set_permits(2, LIMIT);
    CHECK(one.permits() == 2 && !one.try_acquire());
    one.set_permits(3, LIMIT);
}

void readers_and_writers()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("sides");
    mortise::read_write_lock here = client.read_write(name), there = other.read_write(name);
    {
        const mortise::hold one = here.read.acquire(), two = there.read.acquire();
        CHECK(one && two && !open_client().read_write(name).write.try_acquire());
    }
    mortise::hold writer = here.write.acquire();
    CHECK(!there.read.try_acquire());
    writer.downgrade();
    CHECK(there.read.acquire());
}

void several_or_none()
{
    mortise::client client = open_client(), other = open_client();
    const std::string a = fresh("a"), b = fresh("b");
    mortise::lock first = client.mutex(a), second = client.exclusive(b);
    {
        const std::vector<mortise::hold> holds = mortise::acquire_all({&second, &first}, LIMIT);
        CHECK(holds.size() == 2 && holds[0] && holds[1] && holds[0].name() == b);
        CHECK(!other.mutex(a).try_acquire());
    }
    const mortise::hold busy = other.exclusive(b).acquire();
    CHECK(mortise::acquire_all({&first, &second}, 20ms).empty() && queued(client, a, 0));
    std::error_code code;
    mortise::acquire_all({}, LIMIT, code);
    CHECK(code == mortise::errc::invalid);
}

/* ------------------------------------------------------------ loss, end */

void loss_is_told()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("loss");
    mortise::hold hold = client.mutex(name).acquire();
    event lost;
    hold.on_lost([&] { lost.set(); });
    other.break_ticket(name, hold.fence());
    CHECK(lost.wait() && !hold && hold.state() == mortise::state::lost);
    CHECK_THROWS(mortise::errc::lost, hold.check());
    CHECK_THROWS(mortise::kind::lost, hold.release());
    CHECK(client.mutex(name).try_acquire());
}

void empty_function_for_a_loss_is_none()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("no function");
    mortise::hold hold = client.mutex(name).acquire();
    event lost, later;
    hold.on_lost([&] { lost.set(); });
    hold.on_lost(nullptr);
    other.break_ticket(name, hold.fence());
    CHECK(comes_true([&] { return hold.state() == mortise::state::lost; }));
    client.mutex(name).async_acquire(mortise::clock::never(),
                                     [&](std::error_code, mortise::hold) { later.set(); });
    CHECK(later.wait() && !lost.is_set()); // callbacks are made in order
}

/* Ends with its block, also by an exception; what it waits for is declared after it. */
struct joined {
    std::thread thread;
    ~joined()
    {
        if (thread.joinable())
            thread.join();
    }
};

void operator_asks_for_the_lock()
{
    mortise::client client = open_client(), other = open_client("the other");
    const std::string name = fresh("revoke");
    mortise::lock theirs = other.mutex(name);
    joined waiter;
    mortise::hold hold = client.mutex(name).acquire();
    waiter.thread = std::thread([&] { theirs.acquire(); });
    CHECK(queued(client, name, 2));
    const std::vector<mortise::entry> entries = client.list(name);
    CHECK(entries[0].fence == hold.fence() && entries[0].place == 0 && entries[0].label == "test");
    CHECK(entries[1].place == 1 && entries[1].label == "the other" && entries[0].kind == "mutex");
    CHECK(entries[0].id > 0 && entries[1].id > 0 && entries[0].id != entries[1].id);
    event asked;
    hold.on_revoke([&] { asked.set(); });
    other.revoke(name);
    CHECK(asked.wait());
    hold.release();
    waiter.thread.join();
    CHECK_THROWS(mortise::errc::not_held, client.revoke(name));
}

void longest_hold_ends()
{
    mortise::client client = open_client();
    mortise::lock_options options;
    options.max_hold = 100ms;
    mortise::hold hold = client.mutex(fresh("longest"), options).acquire();
    CHECK(comes_true([&] { return hold.state() == mortise::state::lost; }));
}

void detached_lock_is_adopted()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("detach");
    mortise::hold hold = client.mutex(name).acquire();
    const std::string token = hold.detach();
    CHECK(!hold && !other.mutex(name).try_acquire());
    CHECK(other.mutex(name).adopt(token));
    CHECK_THROWS(mortise::errc::not_held, other.mutex(name).adopt(token));
}

void what_a_client_made_keeps_it_open()
{
    const std::string name = fresh("outlive");
    mortise::hold hold;
    {
        mortise::client client = open_client();
        hold = client.mutex(name).acquire();
    }
    CHECK(hold && !open_client().mutex(name).try_acquire());
    hold.release();
    CHECK(open_client().mutex(name).try_acquire());
}

/* The hold of C's has no owner in C++: only the end of the client releases it. */
void client_that_ends_in_a_callback_is_closed()
{
    mortise::client other = open_client();
    const std::string name = fresh("last"), kept = fresh("kept");
    mortise::hold first = other.mutex(name).acquire();
    event done;
    {
        mortise::client client = open_client();
        mortise_lock *native = nullptr;
        mortise_hold value{nullptr, 0};
        CHECK(mortise_mutex_new(client.native(), kept.c_str(), nullptr, &native) == 0);
        CHECK(mortise_acquire(native, &value) == 0);
        client.mutex(name).async_acquire(mortise::clock::never(),
                                         [&](std::error_code, mortise::hold) { done.set(); });
        CHECK(queued(other, name, 2));
    }
    CHECK(!other.mutex(kept).try_acquire());
    first.release();
    CHECK(done.wait() && other.mutex(kept).acquire_for(LIMIT));
}

void calls_after_close_answer_closed()
{
    mortise::client client = open_client();
    mortise::lock lock = client.mutex(fresh("closed"));
    mortise::hold hold = lock.acquire();
    mortise::election election = client.election(fresh("closed"));
    mortise::cell cell = client.cell(fresh("closed"));
    client.close();
    client.close();
    CHECK(!hold && hold.fence() == 0 && hold.name().empty() && client.url().empty());
    CHECK_THROWS(mortise::errc::closed, hold.release());
    CHECK_THROWS(mortise::errc::closed, lock.acquire());
    CHECK_THROWS(mortise::errc::closed, cell.get());
    CHECK_THROWS(mortise::errc::closed, election.campaign(0s));
    CHECK_THROWS(mortise::errc::closed, client.list());
    CHECK_THROWS(mortise::errc::closed, mortise::acquire_all({&lock}, 0s));
    CHECK(client.capabilities().lease_ms == 0);
}

void store_is_described()
{
    mortise::client client = open_client();
    CHECK(!client.url().empty() && !client.server().empty());
    CHECK(client.capabilities().fence == 1);
    const auto before = client.stats().acquisitions;
    client.mutex(fresh("stats")).acquire();
    CHECK(client.stats().acquisitions == before + 1);
}

/* -------------------------------------------------- elections and cells */

void one_candidate_leads()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("election");
    std::mutex mutex;
    std::vector<std::string> seen;
    mortise::election watcher = other.election(name);
    watcher.observe([&](const mortise::leader &now) {
        const std::lock_guard<std::mutex> guard(mutex);
        seen.push_back(now.value);
    });
    mortise::election_options options;
    options.value = "me";
    event elected, deposed;
    options.elected = [&](std::uint64_t) { elected.set(); };
    options.deposed = [&](std::uint64_t) { deposed.set(); };
    {
        mortise::election candidate = client.election(name, options);
        candidate.campaign(LIMIT);
        CHECK(candidate.is_leader() && candidate.fence() > 0 && elected.wait());
        CHECK(candidate.leader().value == "me" && candidate.leader().fence == candidate.fence());
        CHECK_THROWS(mortise::errc::timeout, watcher.campaign(20ms));
        candidate.proclaim("still me");
        CHECK(comes_true([&] {
            const std::lock_guard<std::mutex> guard(mutex);
            return !seen.empty() && seen.back() == "still me";
        }));
        CHECK_THROWS(mortise::errc::deadlock, candidate.campaign(0s));
    }
    CHECK(deposed.wait());
    CHECK(comes_true([&] { // the store is told behind the callback
        std::error_code code;
        return watcher.leader(code).fence == 0 && code == mortise::errc::no_leader;
    }));
    CHECK_THROWS(mortise::errc::not_held, watcher.resign());
    watcher.observe(nullptr);
}

void candidate_that_ends_in_a_callback_resigns()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("ends");
    auto candidate = std::make_unique<mortise::election>(client.election(name));
    event watched, done;
    std::atomic<int> calls{0};
    candidate->observe([&](const mortise::leader &) {
        calls++;
        watched.set();
    });
    candidate->campaign(LIMIT);
    CHECK(watched.wait());
    int before = 0;
    client.mutex(name + "-lock")
        .async_acquire(mortise::clock::never(), [&](std::error_code, mortise::hold) {
            candidate.reset();
            before = calls;
            done.set();
        });
    CHECK(done.wait());
    mortise::election next = other.election(name);
    next.campaign(LIMIT);
    CHECK(next.is_leader() && calls == before);
}

void cells_are_compared_and_set()
{
    mortise::client client = open_client();
    const std::string name = fresh("cell");
    mortise::cell cell = client.cell(name);
    CHECK(cell.get().version == 0);
    std::uint64_t version = cell.compare_and_set(0, std::string_view("a\0b", 3));
    CHECK(cell.get().value == std::string("a\0b", 3) && cell.get().version == version);
    CHECK_THROWS(mortise::errc::conflict, cell.compare_and_set(0, "late"));
    mortise::lock lock = client.mutex(name);
    {
        mortise::hold hold = lock.acquire();
        version = cell.compare_and_set(version, "held", hold);
        cell.update([](const std::string &value) { return value + "!"; }, LIMIT, hold);
        CHECK(cell.get().value == "held!" && cell.get().fence == hold.fence());
        mortise::hold stale;
        CHECK_THROWS(mortise::kind::usage, cell.compare_and_set(version, "none", stale));
    }
    struct own {
    };
    bool caught = false;
    try {
        cell.update([](const std::string &) -> std::string { throw own(); }, LIMIT);
    } catch (const own &) {
        caught = true;
    }
    CHECK(caught);
    CHECK_THROWS(mortise::errc::invalid,
                 cell.update([](const std::string &) { return std::string(5000, 'x'); }, LIMIT));
    cell.erase(cell.get().version);
    CHECK(cell.get().version == 0);
    const mortise::cell moved = std::move(cell);
    CHECK_THROWS(mortise::errc::closed, cell.get()); // NOLINT: what is moved from is empty
}

/* ---------------------------------------------------------- asynchronous */

void callback_gets_the_hold()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("async");
    mortise::lock lock = client.mutex(name);
    mortise::hold first = other.mutex(name).acquire(), got;
    event done, ended;
    lock.async_acquire(mortise::clock::never(), [&](std::error_code code, mortise::hold hold) {
        if (!code)
            got = std::move(hold);
        done.set();
    });
    CHECK(queued(other, name, 2));
    first.release();
    CHECK(done.wait() && got && got.fence() > 0);
    std::error_code end;
    std::string detail;
    mortise::lock third = other.mutex(name);
    third.async_acquire(mortise::clock::now() + 20ms,
                        [&](std::error_code code, mortise::hold hold) {
                            end = hold ? std::error_code() : code;
                            detail = mortise::last_detail();
                            ended.set();
                        });
    CHECK(ended.wait() && end == mortise::errc::timeout && !detail.empty());
}

void cancelled_callback()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("cancel");
    const mortise::hold first = other.mutex(name).acquire();
    mortise::lock lock = client.mutex(name);
    event done;
    std::error_code end;
    lock.async_acquire(mortise::clock::never(), [&](std::error_code code, mortise::hold) {
        end = code;
        done.set();
    });
    CHECK(queued(other, name, 2));
    lock.cancel_waiters();
    CHECK(done.wait() && end == mortise::errc::cancelled && queued(other, name, 1));
}

#ifdef MORTISE_HPP_COROUTINES

/* A coroutine that runs and ends by itself, and may be destroyed where it waits. */
struct task {
    struct promise_type {
        task get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::terminate();
        }
    };
    std::coroutine_handle<promise_type> handle;
};

task count_up(mortise::lock &lock, int &count, event &done)
{
    for (int i = 0; i < 20; i++) {
        const mortise::hold hold = co_await lock.async_acquire();
        count++;
    }
    done.set();
}

void coroutine_awaits_the_hold()
{
    mortise::client client = open_client();
    mortise::lock lock = client.mutex(fresh("coroutine"));
    int count = 0;
    event first, second;
    count_up(lock, count, first);
    count_up(lock, count, second);
    CHECK(first.wait() && second.wait() && count == 40);
}

task fail_in_time(mortise::lock &lock, std::error_code &thrown, std::error_code &set, event &done)
{
    try {
        co_await lock.async_acquire(mortise::clock::now() + 10ms);
    } catch (const mortise::error &fault) {
        thrown = fault.detail().empty() ? std::error_code() : fault.code();
    }
    const mortise::hold hold = co_await lock.async_acquire(mortise::clock::now() + 10ms, set);
    done.set();
}

task await_nothing(std::error_code &set, event &done)
{
    mortise::lock none;
    const mortise::hold hold = co_await none.async_acquire(mortise::clock::never(), set);
    done.set();
}

void coroutine_gets_errors_as_it_chooses()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("errors");
    const mortise::hold first = other.mutex(name).acquire();
    mortise::lock lock = client.mutex(name);
    std::error_code thrown, set;
    event done;
    fail_in_time(lock, thrown, set, done);
    CHECK(done.wait() && thrown == mortise::errc::timeout && set == mortise::errc::timeout);
    event refused;
    await_nothing(set, refused);
    CHECK(refused.wait() && set == mortise::errc::closed);
}

task note_thread(mortise::lock &lock, std::function<void(std::function<void()>)> post,
                 std::thread::id &where)
{
    const mortise::hold hold = co_await lock.async_acquire().on(std::move(post));
    where = std::this_thread::get_id();
}

void coroutine_resumes_where_it_is_posted()
{
    mortise::client client = open_client();
    mortise::lock lock = client.mutex(fresh("post"));
    event posted;
    std::function<void()> resume;
    std::thread::id where;
    note_thread(
        lock,
        [&](std::function<void()> go) {
            resume = std::move(go);
            posted.set();
        },
        where);
    CHECK(posted.wait());
    resume();
    CHECK(where == std::this_thread::get_id());
}

void destroyed_coroutine_leaves_nothing_held()
{
    mortise::client client = open_client(), other = open_client();
    const std::string name = fresh("destroyed");
    mortise::lock lock = client.mutex(name);
    {
        const mortise::hold first = other.mutex(name).acquire();
        int count = 0;
        event done;
        const task one = count_up(lock, count, done);
        CHECK(queued(other, name, 2));
        one.handle.destroy();
    }
    CHECK(queued(other, name, 0) && other.mutex(name).acquire_for(LIMIT));
}

#endif

struct test {
    const char *name;
    void (*run)();
};
#define TEST(name)  \
    {               \
#name, name \
    }
const test tests[] = {
    TEST(hold_ends_with_its_block),
    TEST(hold_moves),
    TEST(lock_that_is_not_free_gives_an_empty_hold),
    TEST(errors_have_a_category),
    TEST(misuse_is_an_error_with_the_librarys_text),
    TEST(other_thread_cannot_release_but_of_nobodys),
    TEST(threads_of_two_clients_exclude_each_other),
    TEST(semaphore_has_permits),
    TEST(readers_and_writers),
    TEST(several_or_none),
    TEST(loss_is_told),
    TEST(empty_function_for_a_loss_is_none),
    TEST(operator_asks_for_the_lock),
    TEST(longest_hold_ends),
    TEST(detached_lock_is_adopted),
    TEST(what_a_client_made_keeps_it_open),
    TEST(client_that_ends_in_a_callback_is_closed),
    TEST(calls_after_close_answer_closed),
    TEST(store_is_described),
    TEST(one_candidate_leads),
    TEST(candidate_that_ends_in_a_callback_resigns),
    TEST(cells_are_compared_and_set),
    TEST(callback_gets_the_hold),
    TEST(cancelled_callback),
#ifdef MORTISE_HPP_COROUTINES
    TEST(coroutine_awaits_the_hold),
    TEST(coroutine_gets_errors_as_it_chooses),
    TEST(coroutine_resumes_where_it_is_posted),
    TEST(destroyed_coroutine_leaves_nothing_held),
#endif
};

} // namespace

int main(int argc, char **argv)
{
    int number = 0, failed = 0;
    if (argc != 2) {
        std::fprintf(stderr, "usage: test_cpp URL\n");
        return 64;
    }
    store = argv[1];
    for (const test &one : tests) {
        std::string fault;
        try {
            one.run();
        } catch (const std::exception &raised) {
            fault = raised.what();
            failed++;
        }
        std::printf("%s %d - %s\n", fault.empty() ? "ok" : "not ok", ++number, one.name);
        if (!fault.empty())
            std::printf("# %s\n", fault.c_str());
        std::fflush(stdout);
    }
    std::printf("1..%d\n", number);
    return failed != 0;
}

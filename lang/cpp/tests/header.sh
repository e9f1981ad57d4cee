#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles mortise.hpp alone, as each compiler and standard that it is for, and the examples of
# README.md as C++20; a TAP line each.
cd "$(dirname "$0")/../../.." || exit 1
number=0
failed=0
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

check() {
    number=$((number + 1))
    if "$@" -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -Ilang/cpp -Iinclude \
        -fsyntax-only "$place/program.cpp" >"$place/log" 2>&1; then
        echo "ok $number - $*"
    else
        echo "not ok $number - $*"
        sed 's/^/# /' "$place/log"
        failed=1
    fi
}

cat >"$place/program.cpp" <<'END'
#include <mortise.hpp>
#include <mortise.hpp>
int use(std::error_code &code);
int use(std::error_code &code)
{
    mortise::client client("", mortise::client_options(), code);
    mortise::read_write_lock table = client.read_write("a", mortise::lock_options(), code);
    mortise::election election = client.election("a", mortise::election_options(), code);
    mortise::cell cell = client.cell("a");
    election.campaign(std::chrono::seconds(1), code);
    const mortise::hold hold = table.write.acquire_for(std::chrono::hours(1), code);
    cell.update([](const std::string &value) { return value; }, std::chrono::minutes(1), hold, code);
    table.read.async_acquire(mortise::clock::never(), [](std::error_code, mortise::hold) {}, code);
    return hold.held() && mortise::acquire_all({&table.read}, std::chrono::seconds(1), code).empty();
}
END
check g++ -std=c++17
check g++ -std=c++17 -fno-exceptions -fno-rtti
check clang++ -std=c++17
check clang++ -std=c++20
# The examples, with what the reader's program would have.
{
    echo "#include <mortise.hpp>
#include <iostream>
#if MORTISE_HPP_COROUTINES
struct task {
    struct promise_type {
        task get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
};
#endif
struct executor {
    void post(std::function<void()> resume) { resume(); }
};"
    sed -n '/^```cpp$/,/^```$/{/^```/!p}' lang/cpp/README.md lang/cpp/from-curator.md
} >"$place/program.cpp"
check g++ -std=c++20
echo "1..$number"
exit $failed

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds 1 to the number in a file, safely however many do it at the same time.
 *
 *   c++ -std=c++17 counter.cpp $(pkg-config --cflags --libs mortise) -o counter
 *   ./counter FILE
 */
#include <mortise.hpp>

#include <fstream>
#include <iostream>

using namespace std::chrono_literals;

static int add_one(const char *path)
{
    mortise::client client; // $MORTISE_URL, or the default file
    mortise::lock lock = client.mutex("counter");
    const mortise::hold hold = lock.acquire_for(5s);
    if (!hold) {
        std::cerr << "counter: held by someone else\n";
        return 75;
    }
    long number = 0;
    std::ifstream(path) >> number;
    hold.check(); // throws if it was lost: another may be here by now
    std::ofstream(path) << number + 1 << '\n';
    std::cout << "fence " << hold.fence() << '\n';
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::cerr << "usage: counter FILE\n";
        return 64;
    }
    try {
        return add_one(argv[1]);
    } catch (const mortise::error &fault) {
        std::cerr << "counter: " << fault.what() << '\n';
        return 1;
    }
}

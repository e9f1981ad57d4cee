/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal of top: raw keys and the alternate screen, and the terminal as it was at the end, at
 * Ctrl-Z and at signals. It needs only a handful of sequences that every terminal of today knows,
 * so no library is loaded by a command whose start is part of a lock's speed.
 *
 * A screen is composed first and written by one call. Lines are cut at the right, one
 * column a character. The composing function must have escaped text from outside.
 */
#include "cli/observe/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ESCAPE "\x1b"

static struct termios original;
static volatile sig_atomic_t ended, suspended, busy, begun;

static void write_all(const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(STDOUT_FILENO, text, size);
        if (written < 0 && errno != EINTR)
            return; /* the terminal is gone; the next read says so */
        text += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
}

static void leave(void)
{
    mrt_screen_end();
    _exit(MRT_EXIT_SIGNAL + ended);
}

static void on_signal(int signal)
{
    if (signal == SIGTSTP)
        suspended = 1;
    else if (signal != SIGWINCH)
        ended = signal;
    if (ended && busy)
        leave();
}

void mrt_screen_busy(bool is_busy)
{
    busy = is_busy && begun;
    if (ended && busy)
        leave();
}

static void enter(void)
{
    static const char begin[] = ESCAPE "[?1049h" ESCAPE "[?25l";
    struct termios raw = original;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    write_all(begin, sizeof begin - 1);
}

bool mrt_screen_begin(void)
{
    static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    struct sigaction action = {.sa_handler = on_signal};
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &original) < 0)
        return false;
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++)
        sigaction(watched[i], &action, NULL);
    enter();
    begun = 1;
    return true;
}

void mrt_screen_end(void)
{
    static const char end[] = ESCAPE "[?25h" ESCAPE "[?1049l";
    tcsetattr(STDIN_FILENO, TCSADRAIN, &original);
    write_all(end, sizeof end - 1); /* the keys are still where they were */
}

int mrt_screen_signal(void)
{
    return ended;
}

void mrt_screen_size(int *lines, int *columns)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
    *lines = known ? size.ws_row : 24;
    *columns = known ? size.ws_col : 80;
}

/* Writes one line, cut; returns the beginning of the next, or NULL: there is none. */
static const char *show_line(FILE *out, const char *line, int columns, bool marked, bool colours)
{
    char colour = *line == MRT_SCREEN_HEAD || *line == MRT_SCREEN_BUSY ? *line++ : '\0';
    if (colours && colour)
        fputs(colour == MRT_SCREEN_HEAD ? ESCAPE "[1m" : ESCAPE "[33m", out);
    fputs(marked ? ESCAPE "[7m" : "", out);
    for (; *line && *line != '\n'; line++) {
        if (((unsigned char)*line & 0xc0) != 0x80)
            columns--;
        if (columns >= 0)
            putc(*line, out);
    }
    fputs(marked || (colours && colour) ? ESCAPE "[0m" ESCAPE "[K" : ESCAPE "[K", out);
    return *line ? line + 1 : NULL;
}

void mrt_screen_show(const char *text, int marked, bool colours)
{
    char *composed = NULL;
    size_t size = 0;
    int lines, columns;
    FILE *out = open_memstream(&composed, &size);
    if (!out)
        return;
    mrt_screen_size(&lines, &columns);
    fputs(ESCAPE "[H", out);
    for (int i = 0; text && i < lines; i++) {
        fputs(i > 0 ? "\n" : "", out);
        text = show_line(out, text, columns, i == marked, colours);
    }
    fputs(ESCAPE "[J", out);
    if (fclose(out) == 0)
        write_all(composed, size);
    free(composed);
}

static void suspend(void)
{
    suspended = 0;
    mrt_screen_end();
    raise(SIGSTOP);
    enter();
}

static int decode(const char *bytes, ssize_t count)
{
    static const struct {
        const char *rest;
        int key;
    } keys[] = {{"A", MRT_KEY_UP},        {"B", MRT_KEY_DOWN},  {"H", MRT_KEY_HOME},
                {"F", MRT_KEY_END},       {"1~", MRT_KEY_HOME}, {"4~", MRT_KEY_END},
                {"7~", MRT_KEY_HOME},     {"8~", MRT_KEY_END},  {"5~", MRT_KEY_PAGE_UP},
                {"6~", MRT_KEY_PAGE_DOWN}};
    if (bytes[0] != '\x1b')
        return (unsigned char)bytes[0];
    for (size_t i = 0; count > 2 && i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(bytes + 2, keys[i].rest) == 0)
            return keys[i].key;
    return count > 1 ? MRT_KEY_OTHER : MRT_KEY_ESCAPE;
}

/* The rest of what a key sends after ESC: "[" or "O", numbers, and one more. */
static ssize_t read_sequence(char *bytes, ssize_t room)
{
    ssize_t count = 1;
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    while (count < room && poll(&fd, 1, 0) > 0 && read(STDIN_FILENO, bytes + count, 1) == 1) {
        char byte = bytes[count++];
        if (count > 2 ? byte >= '@' : byte != '[' && byte != 'O')
            break;
    }
    return count;
}

int mrt_screen_key(mrt_time until)
{
    char bytes[16] = "";
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    mrt_time left = until - mrt_time_now();
    int count = poll(&fd, 1, left > 0 ? (int)(left / MRT_MILLISECOND) + 1 : 0);
    if (suspended)
        suspend();
    if (count <= 0)
        return MRT_KEY_NONE;
    /* Of typed input, one key at a time; a sequence of bytes comes in one piece. */
    ssize_t got = read(STDIN_FILENO, bytes, 1);
    if (got == 1 && bytes[0] == '\x1b')
        got = read_sequence(bytes, sizeof bytes - 1);
    if (got <= 0)
        ended = SIGHUP; /* the terminal is gone */
    return got > 0 ? decode(bytes, got) : MRT_KEY_NONE;
}

{
  "targets": [
    {
      "target_name": "mortise",
      "sources": ["src/addon.c", "src/client.c", "src/inbox.c", "src/lock.c", "src/hold.c", "src/wait.c", "src/store.c", "src/election.c"],
      "cflags": ["<!@(pkg-config --cflags mortise)", "-std=gnu11", "-Wall", "-Wextra"],
      "libraries": ["<!@(pkg-config --libs mortise)"]
    }
  ]
}

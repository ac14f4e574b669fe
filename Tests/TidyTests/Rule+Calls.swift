/// Which calls are made where.
extension Rule {
  /// Only WormholeSyscalls makes system calls, whatever door Foundation opens to them.
  ///
  /// A function or a case of the package's own may have such a name: an argument label
  /// distinguishes it, or a declaration in the same file.
  static let calls = Rule("system calls") { file in
    guard file.isSwift, file.isSource, !["WormholeCLinux", "WormholeSyscalls"].contains(file.room),
      // A file that imports none of these modules sees no function of the C library.
      !doors.isDisjoint(with: file.imported)
    else { return [] }
    let own = Set(
      file.words.joined().filter { $0.previous == "func" || $0.previous == "case" }
        .map(\.text))
    return file.words.enumerated().flatMap { index, words in
      words.compactMap { word in
        guard word.isCalled, !word.hasLabel, word.owner == nil || word.owner == "WormholeLibC",
          systemCalls.contains(word.text), !own.contains(word.text),
          word.text != "exit" || file.room != "WormholeBenchmarks"
        else { return nil }
        return (index + 1, "'\(word.text)' is called in WormholeSyscalls only")
      }
    }
  }

  private static let doors: Set<String> = [
    "Glibc", "WormholeLibC", "Foundation", "FoundationEssentials", "Dispatch",
  ]

  private static let systemCalls: Set<Substring> = [
    "open", "openat", "creat", "close", "read", "pread", "readv", "write", "pwrite", "writev",
    "fsync", "fdatasync", "sync", "rename", "renameat", "renameat2", "link", "linkat", "symlink",
    "symlinkat", "readlink", "readlinkat", "unlink", "unlinkat", "mkdir", "mkdirat",
    "rmdir", "mkfifo", "mknod", "mkstemp", "mkdtemp", "opendir", "readdir", "stat", "fstat",
    "lstat", "fstatat", "statfs", "fstatfs", "access", "chmod", "fchmod", "chown", "fchown",
    "truncate", "ftruncate", "fallocate", "utimensat", "futimens", "flock", "lockf", "fcntl",
    "ioctl", "dup", "dup2", "pipe", "pipe2", "poll", "select", "eventfd", "socket", "mmap",
    "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "fork", "vfork", "execv", "execve",
    "execvp", "posix_spawn", "posix_spawnp", "waitpid", "wait", "kill", "raise", "signal",
    "sigaction", "getenv", "setenv", "unsetenv", "chdir", "umask", "exit", "_exit", "abort",
    "fopen", "fclose", "fread", "fwrite", "fputs", "fflush", "puts", "putchar", "printf", "system",
    "popen", "usleep", "nanosleep", "sleep", "pthread_create", "getpid", "clock_gettime",
  ]

  /// Files are read and written by the container's means, not by Foundation's.
  static let fileCalls = Rule("Foundation's files", in: \.code) { line, file in
    guard file.isSwift, file.isSource,
      !["WormholeCinemaTime", "WormholeCinemaTimeCommand", "WormholeBenchmarks"].contains(file.room)
    else { return nil }
    // Our own `write(to:)` of a descriptor is recognized by the file's imports.
    guard !file.imported.contains("WormholeSyscalls") else { return nil }
    for words in ["Data(contentsOf:", "String(contentsOf", ".write(to:", ".write(toFile:"]
    where line.contains(words) {
      return "'\(words)' goes past the container"
    }
    // AppGroups adds to `FileManager` the functions that it has elsewhere.
    let names = ["FileManager", "NSTemporaryDirectory", "FileHandle"]
    guard file.room != "AppGroups", names.contains(where: line.contains),
      let word = Word.words(of: line).first(where: { names.contains(String($0.text)) })
    else { return nil }
    return "'\(word.text)' goes past the container"
  }

  /// The library has timers and queues of its own: the first of Dispatch's ends a process that has
  /// no descriptors left, and waits for ever where no thread can be had.
  static let timers = Rule("Dispatch's timers") { word, file in
    guard word.isCalled, file.isSource, library.contains(file.room) else { return nil }
    if ["asyncAfter", "makeTimerSource", "sleep"].contains(word.text) {
      return "'\(word.text)' takes descriptors: use 'soon(after:)' of a queue"
    }
    guard file.room == "Wormhole", word.text == "DispatchQueue" else { return nil }
    return "a queue of the library's own is a WorkQueue"
  }

  private static let library: Set<String> = [
    "Wormhole", "WormholePairings", "WormholeDropIns", "AppGroups", "MMWormhole",
    "WatchConnectivity",
    "Communicator", "WormholeCommandLine", "WormholeCommand", "WormholeBridge", "WormholeRelay",
    "WormholeWeb",
  ]

  /// Time that passes proves nothing: a test checks for the expected state until its deadline.
  ///
  /// The tests of the test's clock call its `sleep`, which ends when the test moves the clock.
  static let sleeps = Rule("sleeping tests") { word, file in
    guard word.isCalled, file.isTest, pauses.contains(word.text),
      !file.path.hasPrefix("Tests/Shims/"), !file.path.hasSuffix("/TestClockTests.swift")
    else { return nil }
    return "'\(word.text)': wait for the thing itself, with a deadline"
  }

  private static let pauses: Set<Substring> = [
    "sleep", "usleep", "nanosleep", "clock_nanosleep", "asyncAfter",
  ]
}

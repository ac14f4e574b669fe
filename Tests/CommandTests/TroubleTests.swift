import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// A full disk, missing permissions, damage; and the doctor.
@Suite(.blocking, .notSanitized("about what a command prints")) struct TroubleTests {
  /// The disk is full from the n-th write, or from the n-th new file: the command fails.
  ///
  /// The container stays unchanged, whichever call is the first that fails. A command that ignores
  /// the error fails this test.
  @Test(
    arguments: [
      "put speed 2", "put speed 2 --power", "update speed --add 1", "clear speed",
      "update speed --exec 'echo 2'", "defaults write cinema rows 2", "put new 2",
    ], ["write~hole/", "pwrite~hole/", "open~/next"])
  func aFullDiskChangesNothing(_ words: String, _ place: String) throws {
    let stage = try Stage()
    _ = try stage.run("wormhole put speed 1 --type json; wormhole defaults write cinema rows 1")
    let before = try stage.state()
    // Each call of the command fails once as the first one.
    for number in 1...40 {
      let trace = "\(stage.directory.path)/trace"
      let outcome = try stage.run(
        "rm -f trace && wormhole " + words,
        environment: [
          "WORMHOLE_FAULTS=\(place)@\(number)+:before:fail=ENOSPC", "WORMHOLE_FAULT_TRACE=\(trace)",
        ])
      let calls = try self.calls(in: trace)
      let isMet = Self.place(of: place, number, in: calls)
      guard let isMet, !Self.isChanged(before: isMet, in: calls) else {
        // The change is made; the save behind it needs no space, and tries once.
        #expect(outcome.status == .exited(0), "\(outcome.errors)")
        return
      }
      // If the lock cannot be taken, the program is not started.
      let statuses: [Int32] = words.contains("--exec") ? [73, 125] : [73]
      #expect(statuses.map(ChildStatus.exited).contains(outcome.status), "\(place)@\(number)")
      #expect(outcome.errors.contains("free space on the file system, and try again\n"))
      #expect(try stage.state() == before, "\(place)@\(number)")
    }
    Issue.record("the command writes more than 40 times")
  }

  private func calls(in trace: String) throws -> [Substring] {
    let calls = String(
      decoding: try Descriptor.open(path: trace, [.readOnly]).contents(), as: UTF8.self)
    return calls.split(separator: "\n")
  }

  /// The index of the call that fails; nil if the command did not reach it.
  private static func place(of place: String, _ number: Int, in calls: [Substring]) -> Int? {
    let parts = place.split(separator: "~")
    let met = calls.indices.filter { index in
      calls[index].split(separator: " ")[1] == parts[0] && calls[index].contains(parts[1])
    }
    return met.count < number ? nil : met[number - 1]
  }

  /// Whether a value had its name before a call: the rest of the command only saves the value.
  private static func isChanged(before index: Int, in calls: [Substring]) -> Bool {
    calls[..<index].contains { line in
      line.split(separator: " ")[1] == "rename" && line.hasSuffix("/value.plist")
    }
  }

  /// A shell with a limit of file sizes ends programs at the limit, unless they ignore the signal.
  @Test func aLimitOfFilesIsAnError() throws {
    let stage = try Stage()
    let limited = try stage.run(
      """
      wormhole put speed 1 && head -c 9000 /dev/zero >large
      ulimit -f 4
      wormhole put speed <large; echo $?; wormhole send --to till <large; echo $?
      wormhole send --to till --file large; echo $?
      wormhole get speed; wormhole lock build -- grep SigIgn: /proc/self/status
      """)
    #expect(limited.output.hasPrefix("65\n65\n65\n1\nSigIgn:"), "\(limited.output)")
    // The signals beyond the first 28 belong to the C library.
    #expect(limited.output.hasSuffix("0000000\n"), "\(limited.output)")
    let errors = limited.errors.split(separator: "\n")
    #expect(errors.count == 3)
    #expect(
      errors.allSatisfy {
        $0.hasSuffix("file too large; raise the limit of 'ulimit -f'")
      }, "\(errors)")
    #expect(try stage.run("wormhole queue till; ls hole/staging").output == "")
  }

  /// As on FAT, where nothing else is wrong.
  @Test func aFileSystemWithoutHardLinksIsNamed() throws {
    let stage = try Stage()
    let outcome = try stage.run(
      "wormhole put speed 1", environment: ["WORMHOLE_FAULTS=link@1+:before:fail=EPERM"])
    #expect(outcome.status == .exited(77))
    #expect(outcome.errors.contains("whether its file system supports hard links"))
  }

  @Test(arguments: [
    "put speed 2", "get speed", "list", "watch speed --now --count 1", "lock build -- true",
    "defaults read cinema", "post ready", "doctor",
  ])
  func whatIsNotPermittedIsTold(_ words: String) throws {
    let stage = try Stage()
    _ = try stage.run("wormhole put speed 1; wormhole defaults write cinema rows 1")
    let before = try stage.state()
    let outcome = try stage.run(
      "wormhole " + words, environment: ["WORMHOLE_FAULTS=open~hole@2+:before:fail=EACCES"])
    #expect(outcome.status == .exited(words.hasPrefix("lock") ? 125 : 77))
    #expect(outcome.output == "")
    #expect(outcome.errors.contains("permission denied"), "\(outcome.errors)")
    #expect(outcome.errors.split(separator: "\n").count == 1)
    #expect(try stage.state() == before)
  }

  /// As in the shell of a user who has become another user and has kept the path.
  @Test func aFolderOfThePathThatMayNotBeLookedIntoHidesNothing() throws {
    let isRoot = Processes.effectiveUser == 0
    guard !isRoot || Programs.installed("setpriv") != nil else {
      skip("a path that may not be looked into", missing: "setpriv")
      return
    }
    let stage = try Stage()
    let outcome = try stage.run(
      "chmod 755 . && mkdir -m 000 closed && mkdir -m 777 open && PATH=\"$PWD/closed:$PATH\" "
        + (isRoot ? "setpriv --reuid 12345 --clear-groups " : "")
        + "env WORMHOLE_CONTAINER=open/hole wormhole lock l -- no-such-program")
    // Such a user may have no access to the command's directory.
    if ["env: ", "setpriv: "].contains(where: outcome.errors.hasPrefix) {
      skip("a path that may not be looked into", because: outcome.errors)
      return
    }
    #expect(
      outcome.errors == "wormhole: cannot run 'no-such-program': no such file or directory\n")
    #expect(outcome.status == .exited(127))
  }

  @Test func permissionsOfTheSystemCount() throws {
    guard Processes.effectiveUser == 0 else {
      return skip("a user without permissions", because: "only root can become one")
    }
    guard Programs.installed("setpriv") != nil else {
      return skip("a user without permissions", missing: "setpriv")
    }
    let stage = try Stage()
    let outcome = try stage.run(
      "wormhole put speed 1 && setpriv --reuid 12345 --clear-groups "
        + "env WORMHOLE_CONTAINER=hole wormhole get speed")
    // Which of the two fails first depends on the permissions of the directory above.
    #expect(outcome.status == .exited(77) || outcome.status.code >= 126)
    #expect(outcome.output == "")
  }

  // MARK: Damage

  private func damage(_ stage: Stage, _ channel: String) throws {
    // A file of its own, because the value may be the previous value too.
    _ = try stage.run("echo damaged >bad; mv bad hole/channels/\(channel)/value.plist")
  }

  @Test func damageIsTold() throws {
    let stage = try Stage()
    _ = try stage.run("wormhole put speed 1 && rm -f hole/channels/speed/kept.plist")
    try damage(stage, "speed")
    let get = try stage.run("wormhole get speed --json")
    #expect(get.status == .exited(65))
    #expect(get.output == "")
    #expect(
      get.errors.hasPrefix(#"{"code":"damaged","errno":null,"error":"cannot read channel 'speed':"#)
    )
    let list = try stage.run("wormhole list --json").output
    #expect(list.hasPrefix(#"{"channel":"speed","cleared":null,"confirmedAt":null,"damage":""#))
    #expect(try stage.run("wormhole list").output == "speed\n")
    #expect(try stage.run("wormhole put speed 2 && wormhole get speed").output == "2\n")
  }

  @Test func aDamagedMarkIsReplacedInTheStatedWay() throws {
    let stage = try Stage()
    _ = try stage.run("wormhole put speed 1; echo damaged >hole/container.plist")
    for verb in ["get speed", "put speed 2", "doctor"] {
      let refused = try stage.run("wormhole \(verb)")
      #expect(refused.status == .exited(65))
      #expect(
        refused.errors.hasSuffix(
          "; end the container's programs, then put back a copy of the file, or move the file "
            + "out of the container: the next write makes a new file\n"), "\(refused.errors)")
    }
    let moved = try stage.run("mv hole/container.plist . && wormhole put film 2; wormhole list")
    #expect(moved.output == "film\nspeed\n", "\(moved.errors)")
  }

  @Test(arguments: ["mkfifo", "mkdir", "ln -s /dev/null"])
  func oneRefusedChannelIsInNobodysWay(_ make: String) throws {
    let stage = try Stage()
    _ = try stage.run("for n in a b zlast; do wormhole put $n 1; done")
    _ = try stage.run("rm hole/channels/b/*.plist; \(make) hole/channels/b/value.plist")
    let list = try stage.run("wormhole list")
    #expect(list.output == "a\nb\nzlast\n", "\(list.errors)")
    #expect(list.status == .exited(0))
    let lines = try stage.run("wormhole list --json").output.split(separator: "\n")
    #expect(lines.count == 3)
    let start = #""channel":"b","cleared":null,"confirmedAt":null,"damage":""#
    #expect(lines.filter { $0.contains(start) }.count == 1)
    let clear = try stage.run("wormhole clear --all")
    #expect(clear.status == .exited(77), "\(clear.errors)")
    #expect(clear.errors.contains("channel 'b'"))
    #expect(try stage.run("wormhole list").output == "b\n")
  }

  @Test func theDoctorFindsNothingWrong() throws {
    let stage = try Stage()
    let outcome = try stage.run("wormhole put speed 1 && wormhole doctor && wormhole doctor --json")
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors == "")
    #expect(outcome.output.contains("fine      container: format 1, "))
    #expect(!outcome.output.contains("problem"))
    #expect(outcome.output.contains(#""finding":"format 1, "#))
  }

  @Test func theDoctorFindsAndMends() throws {
    let stage = try Stage()
    let made = try stage.run(
      "wormhole put speed 1 && wormhole put speed 2 --power && wormhole put speed 3 --power "
        + "&& ls hole/channels/speed/kept.plist && echo mine >hole/channels/mine")
    #expect(made.status == .exited(0), "\(made.errors)")
    try damage(stage, "speed")
    let recovered = try stage.run("wormhole get speed")
    #expect(recovered.status == .exited(0))
    #expect(
      recovered.errors
        == "wormhole: the latest value of channel 'speed' is damaged; this is the previous value\n")
    #expect(try stage.run("wormhole get speed --quiet").errors == "")
    let before = try stage.state()
    let found = try stage.run("wormhole doctor")
    #expect(found.status == .exited(1))
    #expect(try stage.state() == before)
    #expect(found.output.contains("problem   channels/speed/value.plist: damaged"))
    #expect(found.output.contains("\n          the next change repairs the value\n"))
    #expect(found.output.contains("note      channels/mine: a foreign file"))
    let mended = try stage.run("wormhole doctor --repair")
    #expect(mended.output.contains("repaired  channels/speed/value.plist: damaged"))
    // The recovered value is set aside for a person to look at, which is another finding.
    #expect(mended.status == .exited(1))
    #expect(mended.output.contains("problem   damaged/"))
    #expect(try stage.run("wormhole get speed").status == .exited(0))
    #expect(try stage.run("rm hole/damaged/* && wormhole doctor").status == .exited(0))
  }

  @Test func theDoctorNeedsAContainer() throws {
    let stage = try Stage()
    let outcome = try stage.run("wormhole doctor")
    #expect(outcome.status == .exited(1))
    #expect(
      stage.normal(outcome.errors)
        == "wormhole: cannot open container 'DIR': the directory does not exist\n")
    #expect(try stage.run("ls").output == "")
  }
}

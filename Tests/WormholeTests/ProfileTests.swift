import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Profiles: the members' data about themselves, and other files that may have the profile's name.
@Suite(.blocking) struct ProfileTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }
  private let path = "members/phone/profile.plist"

  init() throws { meeting = try Meeting() }

  private func home() throws -> Descriptor {
    try container.storage.root.descriptor.open("members/phone", [.readOnly, .directory])
  }

  private func entries() throws -> [String: PropertyListValue] {
    try #require(try BinaryPropertyList.decode(meeting.bytes(of: path)).dictionaryValue)
  }

  private func replace(_ entries: [String: PropertyListValue]) throws {
    let bytes = try BinaryPropertyList.encode(.dictionary(entries))
    try home().unlink("profile.plist")
    try home().open("profile.plist", [.writeOnly, .create], mode: 0o600).write(bytes)
  }

  @Test func theFileIsAsTheArticleSays() throws {
    let before = Date()
    let member = try container.join(as: "phone", info: ["a": "b"])
    let found = try entries()
    let own = ProcessIdentity.current
    #expect(found["name"] == "phone")
    #expect(found["incarnation"] == .string(member.incarnation.rawValue))
    #expect(found["process"] == .integer(Int64(own.process)))
    #expect(found["namespace"] == .unsigned(own.namespace))
    #expect(found["started"] == .unsigned(own.started))
    #expect(found["program"] == .string(own.program))
    #expect(found["info"] == ["a": "b"])
    #expect(found.count == 8)
    let since = try #require(found["since"]?.dateValue)
    #expect(abs(since.timeIntervalSince(before)) < 60)
    #expect(try home().status(of: "profile.plist").mode == 0o600)
    #expect(try home().status(of: "presence").mode == 0o600)
    #expect(
      try container.storage.root.descriptor.open("staging", [.readOnly, .directory]).names() == [])
  }

  /// Nobody is told of a change that the profile does not state.
  @Test func aProfileThatCannotBeWrittenIsAnError() throws {
    let member = try container.join(as: "phone", info: ["a": "b"])
    let rule = FaultRule(.rename, path: "profile.plist", persistent: true, .fail(.noSpace))
    let calls = FaultPoints.with([rule]) {
      let error = #expect(throws: WormholeError.self) { try member.update(info: ["c": "d"]) }
      #expect(error?.code == .full)
    }
    #expect(calls.contains { $0.hasPrefix("rename") }, "\(calls)")
    #expect(member.info == ["a": "b"])
    #expect(try container.peer("phone").profile?.info == ["a": "b"])
  }

  @Test func whatAMemberTellsCanChange() throws {
    let member = try container.join(as: "phone", info: ["a": "b"])
    let since = try container.peer("phone").profile?.joinedAt
    try member.update(info: ["c": "d"])
    #expect(member.info == ["c": "d"])
    let profile = try #require(try container.peer("phone").profile)
    #expect(profile.info == ["c": "d"])
    #expect(profile.incarnation == member.incarnation)
    #expect(profile.joinedAt == since)
    member.leave()
    let error = try failure { try member.update(info: [:]) }
    #expect(error.code == .notJoined)
    #expect("\(error)" == "cannot update info of 'phone': the member has left; join again")
    #expect(try container.peer("phone").profile?.info == ["c": "d"])
  }

  @Test func whatATakenNameTellsIsNotOverwritten() throws {
    let first = try container.join(as: "phone", info: ["a": "first"])
    first.leave()
    let second = try container.join(as: "phone", info: ["a": "second"])
    #expect(try failure { try first.update(info: ["a": "late"]) }.code == .notJoined)
    #expect(try container.peer("phone").profile?.info == ["a": "second"])
    second.leave()
  }

  @Test func whatIsTooMuchIsRefused() throws {
    let largest = ["k": String(repeating: "x", count: 4095)]
    let member = try container.join(as: "phone", info: largest)
    var more = largest
    more["l"] = ""
    #expect(try failure { try member.update(info: more) }.code == .tooLarge)
    #expect(member.info == largest)
    #expect(try failure { _ = try container.join(as: "watch", info: more) }.code == .tooLarge)
    #expect(try container.storage.existingMember("watch") == nil)
  }

  /// A letter outside ASCII takes several bytes.
  @Test func theLimitCountsBytesOfKeysAndValues() throws {
    let half = String(repeating: "ä", count: 1024)
    let member = try container.join(as: "phone", info: [half: half])
    #expect(member.info == [half: half])
    for more in [[half + "k": half], [half: half + "ä"]] {
      let changed = #expect(throws: WormholeError.self) { try member.update(info: more) }
      #expect(changed?.code == .tooLarge)
      let joined = #expect(throws: WormholeError.self) {
        _ = try container.join(as: "watch", info: more)
      }
      #expect(joined?.code == .tooLarge)
    }
    #expect(try container.peer("phone").profile?.info == [half: half])
  }

  @Test func aNameThatCannotBeUsedIsAnError() throws {
    #expect(try failure { _ = try container.join(as: "") }.code == .invalidName)
    let long = String(repeating: "ä", count: 60)
    #expect(try failure { _ = try container.peer(long).reachability }.code == .invalidName)
    #expect(
      try failure { _ = try container.peer(long).watchReachability { _ in } }.code == .invalidName)
    let odd = "../ä\n%2F"
    let member = try container.join(as: odd)
    #expect(try container.members().map(\.name) == [odd])
    #expect(try member.peer(odd).reachability == .running)
  }

  @Test func whatIsUnknownIsNotKept() throws {
    try container.join(as: "phone").leave()
    var changed = try entries()
    changed["later"] = "unknown"
    try replace(changed)
    #expect(try container.peer("phone").profile?.name == "phone")
    let member = try container.join(as: "phone")
    try member.update(info: ["a": "b"])
    #expect(try entries()["later"] == nil)
  }

  @Test(arguments: [
    "incarnation", "process", "namespace", "started", "program", "since", "info",
  ])
  func aProfileOfAnotherFormIsUnknown(_ key: String) throws {
    try container.join(as: "phone").leave()
    let sound = try entries()
    for value: PropertyListValue? in [nil, [1], -1, "../x", .unsigned(.max), ["a": 1]] {
      var changed = sound
      changed[key] = value
      // Any text names a program, and any number that is not negative a namespace or a start.
      if key == "program", value == "../x" { continue }
      if key == "namespace" || key == "started", value == .unsigned(.max) { continue }
      if key == "process", value == -1 { continue }
      try replace(changed)
      #expect(try container.peer("phone").profile == nil, "\(key) \(String(describing: value))")
      #expect(try container.peer("phone").reachability == .notRunning)
    }
    try container.join(as: "phone").leave()
    #expect(try container.peer("phone").profile != nil)
  }

  @Test func aProfileThatIsDamagedIsReplacedAndSaidSo() throws {
    let messages = Heard<String>()
    let container = try meeting.another { $0.log = { messages.add($0.text) } }
    for junk in ["", "junk", "bplist00junk", String(repeating: "x", count: 100_000)] {
      try container.join(as: "phone").leave()
      try meeting.overwrite(path, Array(junk.utf8))
      #expect(try container.peer("phone").profile == nil)
      #expect(try container.peer("phone").reachability == .notRunning)
      #expect(try container.members() == [])
      let before = messages.count
      let member = try container.join(as: "phone")
      #expect(messages.count == before + 1)
      #expect(try container.peer("phone").profile?.incarnation == member.incarnation)
      member.leave()
    }
    #expect(messages.all.allSatisfy { $0.contains("profile of member 'phone' was damaged") })
  }

  @Test(arguments: ["profile.plist", "presence"], ["fifo", "link", "directory", "socket"])
  func whatIsNoFileIsRefusedAndLeft(_ name: String, _ kind: String) throws {
    try container.join(as: "phone").leave()
    let home = try home()
    try home.unlink(name)
    switch kind {
    case "fifo": try home.makeFIFO(name, mode: 0o600)
    case "link": try home.makeSymbolicLink(name, to: "../elsewhere")
    case "socket": try home.makeSocket(name, mode: 0o600)
    default: try home.makeDirectory(name, mode: 0o700)
    }
    let before = try home.status(of: name)
    let heard = Heard<Reachability>()
    let watch = try container.peer("phone").watchReachability { heard.add($0) }
    try heard.waitForLast(name == "presence" ? .notRunning : .neverJoined)
    watch.stop()
    #expect(try container.members().count == (name == "presence" ? 1 : 0))
    let error = try failure { _ = try container.join(as: "phone") }
    #expect(error.code == .refused, "\(error)")
    #expect("\(error)".hasPrefix("cannot join as 'phone': '\(name)' in its directory "), "\(error)")
    #expect(try home.status(of: name).isSameFile(as: before))
    #expect(try container.peer("phone").reachability != .running)
  }

  // MARK: Changes by other tools

  @Test func aPresenceThatWasRemovedIsMadeAgain() throws {
    try container.join(as: "phone").leave()
    try home().unlink("presence")
    #expect(try container.peer("phone").reachability == .notRunning)
    let member = try container.join(as: "phone")
    #expect(try container.peer("phone").reachability == .running)
    #expect(try home().status(of: "presence").mode == 0o600)
    member.leave()
  }

  /// Another file has the name by the time the first is locked: the joiner must lock the new file.
  @Test func aPresenceThatIsReplacedUnderAJoinerIsNoticed() throws {
    try container.join(as: "phone").leave()
    let joiner = try Running(
      .be(meeting.path, "phone"),
      environment: ["WORMHOLE_FAULTS=ofdlock:before:stop"])
    try joiner.waitUntilStopped()
    try home().unlink("presence")
    let member = try container.join(as: "phone")
    try joiner.child.send(.go)
    let outcome = try joiner.outcome()
    #expect(outcome.status == .exited(70))
    #expect(outcome.errors.contains("cannot join as 'phone'"))
    member.leave()
  }

  /// The error must not say that the member has left.
  @Test func aMemberThatCannotLookIsToldWhy() throws {
    let member = try container.join(as: "phone")
    let rule = FaultRule(.fstatat, path: "presence", .fail(.inputOutput))
    FaultPoints.with([rule]) {
      let error = #expect(throws: WormholeError.self) { try member.update(info: ["a": "b"]) }
      #expect(error?.errno == Errno.inputOutput.rawValue)
    }
    try member.update(info: ["a": "b"])
    member.leave()
  }

  @Test func aMemberWhoseDirectoryWasRemovedIsTold() throws {
    let member = try container.join(as: "phone")
    #expect(try run("rm", ["-r", meeting.path + "/members/phone"]).status == .exited(0))
    #expect(try container.peer("phone").reachability == .neverJoined)
    #expect(try container.members() == [])
    let error = try failure { try member.update(info: ["a": "b"]) }
    #expect(error.code == .notJoined)
    #expect(
      "\(error)" == "cannot update info of 'phone': the member's directory was removed; join again")
    // No process can see that the member still has the name.
    let other = try meeting.another().join(as: "phone")
    #expect(try failure { try member.update(info: ["a": "b"]) }.code == .notJoined)
    member.leave()
    #expect(try container.peer("phone").reachability == .running)
    #expect(try container.peer("phone").profile?.incarnation == other.incarnation)
  }

  /// A process in another container of the machine: its process ID means nothing here.
  @Test func whatCannotBeSeenIsNotGuessed() throws {
    let member = try container.join(as: "phone")
    var changed = try entries()
    changed["namespace"] = .unsigned(ProcessIdentity.current.namespace + 1)
    try replace(changed)
    let profile = try #require(try container.peer("phone").profile)
    #expect(profile.isRunning)
    #expect(profile.isStopped == nil)
    member.leave()
  }

  @Test func aGroupSharesItsMembers() throws {
    let meeting = try Meeting { $0.sharing = .group }
    let member = try meeting.container.join(as: "phone")
    let home = try meeting.container.storage.root.descriptor.open(
      "members/phone", [.readOnly, .directory])
    for name in ["presence", "profile.plist"] {
      #expect(try home.status(of: name).mode == 0o660, "\(name)")
    }
    #expect(try home.status().mode == 0o2770)
    try member.update(info: ["a": "b"])
    #expect(try home.status(of: "profile.plist").mode == 0o660)
    member.leave()
    try home.unlink("presence")
    _ = try meeting.container.join(as: "phone")
    #expect(try home.status(of: "presence").mode == 0o660)
  }
}

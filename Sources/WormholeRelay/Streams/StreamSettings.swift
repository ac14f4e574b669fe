internal import WormholePropertyLists
internal import WormholeSyscalls

/// How a stream is created.
///
/// Every stream is stored in files, keeps its messages until a limit is exceeded, and refuses new
/// messages that would make the stream too large.
package struct StreamSettings: Equatable, Sendable {
  package var name: String
  package var subjects: [String]
  package var replicas: Int
  package var maxAge: Duration?
  package var maxPerSubject: Int
  package var allowsDirect: Bool

  package init(
    name: String, subjects: [String], replicas: Int = 1, maxAge: Duration? = nil,
    maxPerSubject: Int, allowsDirect: Bool = false
  ) {
    self.name = name
    self.subjects = subjects
    self.replicas = replicas
    self.maxAge = maxAge
    self.maxPerSubject = maxPerSubject
    self.allowsDirect = allowsDirect
  }

  var json: PropertyListValue {
    .dictionary([
      "name": .string(name), "subjects": .array(subjects.map { .string($0) }),
      "retention": "limits", "storage": "file", "discard": "new",
      "num_replicas": .integer(Int64(replicas)),
      "max_age": .integer(maxAge?.inNanoseconds ?? 0),
      "max_msgs_per_subject": .integer(Int64(maxPerSubject)), "max_msgs": -1,
      "max_bytes": -1, "allow_direct": .boolean(allowsDirect), "max_consumers": -1,
    ])
  }

  /// Reads the settings of an existing stream; a missing number counts as no limit.
  init?(json: PropertyListValue) {
    guard let name = json["name"]?.stringValue else { return nil }
    let age = json["max_age"]?.intValue ?? 0
    self.init(
      name: name, subjects: (json["subjects"]?.arrayValue ?? []).compactMap(\.stringValue),
      replicas: json["num_replicas"]?.intValue ?? 1,
      maxAge: age > 0 ? .nanoseconds(age) : nil,
      maxPerSubject: json["max_msgs_per_subject"]?.intValue ?? -1,
      allowsDirect: json["allow_direct"]?.boolValue ?? false)
  }
}

/// The state of a stream.
package struct StreamInfo: Sendable {
  package let settings: StreamSettings
  package let firstSequence: UInt64
  package let lastSequence: UInt64
  package let messages: UInt64
  package let bytes: UInt64
  /// The server that decides for the stream; nil for a server without a cluster.
  package let leader: String?

  package var replicas: Int { settings.replicas }
  package var maxPerSubject: Int { settings.maxPerSubject }

  init?(json: PropertyListValue) {
    guard let settings = json["config"].flatMap(StreamSettings.init(json:)),
      let state = json["state"]
    else { return nil }
    func number(_ key: String) -> UInt64? { state[key].flatMap(RelayJSON.number) }
    guard let first = number("first_seq"), let last = number("last_seq"),
      let messages = number("messages")
    else { return nil }
    self.settings = settings
    firstSequence = first
    lastSequence = last
    self.messages = messages
    bytes = number("bytes") ?? 0
    leader = json["cluster"]?["leader"]?.stringValue
  }
}

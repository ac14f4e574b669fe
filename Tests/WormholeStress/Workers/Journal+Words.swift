/// The text of entries: words separated by tabs, of which the first is the type of the entry.
extension Journal.Event {
  var words: [String] {
    switch self {
    case .life(let number, let faults): ["life", "\(number)", faults]
    case .begin(let operation): ["begin"] + operation.words
    case .end(let result): ["end"] + result.words
    case .got(let token, let from, let isRedelivered):
      ["got", token, from, isRedelivered ? "again" : "first"]
    case .acknowledged(let token, let isSure): ["acknowledged", token, isSure ? "sure" : "unsure"]
    case .tookJob(let token, let isRedelivered): ["job", token, isRedelivered ? "again" : "first"]
    case .endedJob(let token, let isSure): ["done", token, isSure ? "sure" : "unsure"]
    case .asked(let token): ["asked", token]
    case .broken(let what): ["broken", what.plain]
    case .heard(let token, let from): ["heard", token, from]
    case .told(let token, let end): ["told", token, end]
    case .inside(let token): ["inside", token]
    case .outside(let token, let before, let after):
      ["outside", token] + (before + after).map(\.text)
    case .holding(let descriptors, let threads, let ownThreads, let memory):
      ["holding", "\(descriptors)", "\(threads)", "\(ownThreads)", "\(memory)"]
    }
  }

  init?(_ words: ArraySlice<String>) {
    let words = Array(words)
    guard let first = words.first else { return nil }
    let rest = Array(words.dropFirst())
    switch (first, rest.count) {
    case ("life", 2):
      guard let number = Int(rest[0]) else { return nil }
      self = .life(number: number, faults: rest[1])
    case ("begin", 1...):
      guard let operation = Journal.Operation(rest) else { return nil }
      self = .begin(operation)
    case ("end", 1...):
      guard let result = Journal.Result(rest) else { return nil }
      self = .end(result)
    case ("got", 3): self = .got(token: rest[0], from: rest[1], isRedelivered: rest[2] == "again")
    case ("acknowledged", 2): self = .acknowledged(token: rest[0], isSure: rest[1] == "sure")
    case ("job", 2): self = .tookJob(token: rest[0], isRedelivered: rest[1] == "again")
    case ("done", 2): self = .endedJob(token: rest[0], isSure: rest[1] == "sure")
    case ("asked", 1): self = .asked(token: rest[0])
    case ("broken", 1): self = .broken(rest[0])
    case ("heard", 2): self = .heard(token: rest[0], from: rest[1])
    case ("told", 2): self = .told(token: rest[0], end: rest[1])
    case ("inside", 1): self = .inside(token: rest[0])
    case ("outside", 1...):
      let contents = rest.dropFirst().compactMap { SharedFiles.Content($0) }
      let half = contents.count / 2
      self = .outside(
        token: rest[0], before: Array(contents.prefix(half)), after: Array(contents.dropFirst(half))
      )
    case ("holding", 4):
      let numbers = rest.compactMap { Int($0) }
      guard numbers.count == 4 else { return nil }
      self = .holding(
        descriptors: numbers[0], threads: numbers[1], ownThreads: numbers[2], memory: numbers[3])
    default: return nil
    }
  }
}

extension Journal.Operation {
  var words: [String] {
    switch self {
    case .put(let channel, let token, let expected):
      ["put", channel, token, expected.map { "\($0)" } ?? "-"]
    case .clear(let channel): ["clear", channel]
    case .read(let channel): ["read", channel]
    case .add(let channel): ["add", channel]
    case .send(let to, let tokens): ["send", to] + tokens
    case .sendFile(let to, let token): ["file", to, token]
    case .cancel(let token): ["cancel", token]
    case .job(let token, let key): ["job", token, key ?? "-"]
    case .ask(let of, let token): ["ask", of, token]
    case .tell(let to, let token): ["tell", to, token]
    case .stray(let isRead): ["stray", isRead ? "read" : "put"]
    case .access(let token, let uses, let takesOver):
      ["access", token, takesOver ? "takes" : "waits"] + uses.map(\.text)
    case .leave: ["leave"]
    }
  }

  init?(_ words: [String]) {
    switch (words[0], words.count) {
    case ("put", 4): self = .put(channel: words[1], token: words[2], expected: Int(words[3]))
    case ("clear", 2): self = .clear(channel: words[1])
    case ("read", 2): self = .read(channel: words[1])
    case ("add", 2): self = .add(channel: words[1])
    case ("send", 3...): self = .send(to: words[1], tokens: Array(words[2...]))
    case ("file", 3): self = .sendFile(to: words[1], token: words[2])
    case ("job", 3): self = .job(token: words[1], key: words[2] == "-" ? nil : words[2])
    case ("cancel", 2): self = .cancel(token: words[1])
    case ("ask", 3): self = .ask(of: words[1], token: words[2])
    case ("tell", 3): self = .tell(to: words[1], token: words[2])
    case ("stray", 2): self = .stray(isRead: words[1] == "read")
    case ("access", 4...):
      self = .access(
        token: words[1], uses: words.dropFirst(3).compactMap { SharedFiles.Use($0) },
        takesOver: words[2] == "takes")
    case ("leave", 1): self = .leave
    default: return nil
    }
  }
}

extension Journal.Result {
  var words: [String] {
    switch self {
    case .done: ["done"]
    case .version(let version, let token): ["version", "\(version)", token]
    case .number(let number): ["number", "\(number)"]
    case .truth(let truth): ["truth", truth ? "yes" : "no"]
    case .refused(let reason): ["refused", reason.plain]
    case .failed(let reason): ["failed", reason.plain]
    }
  }

  init?(_ words: [String]) {
    switch (words[0], words.count) {
    case ("done", 1): self = .done
    case ("version", 3):
      guard let version = Int(words[1]) else { return nil }
      self = .version(version, words[2])
    case ("number", 2):
      guard let number = Int(words[1]) else { return nil }
      self = .number(number)
    case ("truth", 2): self = .truth(words[1] == "yes")
    case ("refused", 2): self = .refused(words[1])
    case ("failed", 2): self = .failed(words[1])
    default: return nil
    }
  }
}

extension String {
  /// Replaces characters that would end a word or a line.
  fileprivate var plain: String {
    String(map { $0 == "\t" || $0.isNewline ? " " : $0 })
  }
}

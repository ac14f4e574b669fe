extension BinaryWriter {
  /// Writes a value and everything below it, with a stack of its own.
  ///
  /// Dictionaries are written in the order of their keys, so that equal values give equal files.
  func add(_ value: PropertyListValue, to link: UInt32) throws(PropertyListError) {
    guard let leaf = addLeaf(value) else {
      var waiting = [(value, link)]
      while let (value, link) = waiting.popLast() {
        try addContainer(value, at: link, &waiting)
      }
      return
    }
    links[Int(link)].value = leaf
    try check()
  }

  /// Writes a dictionary as its own `encode(to:)` would, without the cost of `Codable`.
  ///
  /// The order of the keys is the dictionary's: sorting would take longer than writing.
  func add(_ values: [String: PropertyListValue], to link: UInt32) throws {
    let dictionary = container(isDictionary: true, at: link)
    for (key, value) in values {
      let link = addLink(to: dictionary, key: addKey(key))
      do throws(PropertyListError) {
        try add(value, to: link)
        try check()
      } catch {
        let failed = wrapped(error, value, at: link)
        remove(link)
        throw failed
      }
    }
  }

  private func addContainer(
    _ value: PropertyListValue, at link: UInt32, _ waiting: inout [(PropertyListValue, UInt32)]
  ) throws(PropertyListError) {
    if case .array(let values) = value {
      let container = addContainer(isDictionary: false, at: link)
      for value in values {
        let link = addLink(to: container)
        if let leaf = addLeaf(value) {
          links[Int(link)].value = leaf
        } else {
          waiting.append((value, link))
        }
        try check()
      }
    } else if case .dictionary(let values) = value {
      let container = addContainer(isDictionary: true, at: link)
      for (key, value) in values.sorted(by: { $0.key < $1.key }) {
        let link = addLink(to: container, key: addKey(key))
        if let leaf = addLeaf(value) {
          links[Int(link)].value = leaf
        } else {
          waiting.append((value, link))
        }
        try check()
      }
    }
  }

  func addLeaf(_ value: PropertyListValue) -> UInt32? {
    switch value {
    case .dictionary, .array: nil
    // Whether the value was a nil or a text is no longer known; usually it was nil.
    case .string(Self.null): addNull()
    case .string(let value): add(value)
    case .data(let value): add(value)
    case .integer(let value): add(value)
    case .unsigned(let value): add(value)
    case .real(let value): add(value)
    case .boolean(let value): add(value)
    case .date(let value): add(value)
    }
  }
}

#if FAULT_POINTS
  import WormholeBridge
  import WormholeContainerStorage
  import WormholePropertyLists
  import WormholeSyscalls

  /// A directory that stands for the servers between the bridges of two machines.
  ///
  /// As on servers, a bundle gets a number when it is published, each later bridge of a machine
  /// receives all bundles again, and a bundle may be lost after it was acknowledged: its file is
  /// empty. A machine states how far it is in a file, in place of a confirmation and of the reply
  /// to a question.
  struct ServerFiles {
    /// The position of a machine in a flow, and the last bundle that it has read.
    struct Statement {
      let position: FlowPosition
      let bundle: Int
    }

    private static let (stated, bundleKey) = ("stated", "bundle")

    let path: String
    /// In the names of incomplete files: a process may be killed before it renames its file.
    let generation: Int

    init(_ path: String, _ machines: [String], generation: Int) throws(Errno) {
      (self.path, self.generation) = (path, generation)
      try Self.makeFolder(path)
      for machine in machines {
        try Self.makeFolder(bundles(to: machine))
        try Self.makeFolder(statements(of: machine))
      }
    }

    private static func makeFolder(_ path: String) throws(Errno) {
      do throws(Errno) {
        try Descriptor.makeDirectory(path: path, mode: 0o700)
      } catch {
        guard error == .fileExists else { throw error }
      }
    }

    static func names(in folder: String) throws(Errno) -> [String] {
      let directory = try Descriptor.open(path: folder, [.readOnly, .directory])
      return try directory.names()
    }

    func bundles(to machine: String) -> String { "\(path)/to.\(machine)" }
    func statements(of machine: String) -> String { "\(path)/of.\(machine)" }

    private func put(_ bytes: [UInt8], as name: String, in folder: String) throws(Errno) {
      let parent = try Descriptor.open(path: folder, [.readOnly, .directory])
      let unfinished = "new.\(generation)"
      let file = try parent.open(unfinished, .writeOnlyNew, mode: 0o600)
      let done: Void? = try? file.writeFully(bytes)
      do throws(Errno) {
        guard done != nil else { throw .inputOutput }
        try parent.rename(unfinished, to: parent, name)
      } catch {
        try parent.unlink(unfinished)
        throw error
      }
    }

    private static func bytes(of path: String) throws(Errno) -> [UInt8] {
      let file = try Descriptor.open(path: path, [.readOnly])
      var bytes = [UInt8](repeating: 0, count: try file.status().size)
      let count = bytes.withUnsafeMutableBytes { try? file.readFully(into: $0) }
      guard count == bytes.count else { throw .inputOutput }
      return bytes
    }

    // MARK: Bundles

    /// The numbers of all bundles, in order.
    func numbers(to machine: String) throws(Errno) -> [Int] {
      try Self.names(in: bundles(to: machine)).compactMap { Int($0) }.sorted()
    }

    func publish(
      _ bundle: FlowBundle, to machine: String, as number: Int, isLost: Bool
    ) throws(Errno) {
      let digits = String(number)
      let name = String(repeating: "0", count: 8 - digits.count) + digits
      try put(isLost ? [] : bundle.encoded() ?? [], as: name, in: bundles(to: machine))
    }

    /// Returns nil for a bundle that the servers have lost.
    func bundle(_ number: Int, to machine: String) throws(Errno) -> FlowBundle? {
      let digits = String(number)
      let name = String(repeating: "0", count: 8 - digits.count) + digits
      return FlowBundle(try Self.bytes(of: "\(bundles(to: machine))/\(name)"))
    }

    // MARK: Positions

    func state(_ statement: Statement, of machine: String) throws {
      var list = statement.position.propertyList
      list[Self.bundleKey] = .integer(Int64(statement.bundle))
      try put(
        try BinaryEncoder().encode(PropertyListValue.dictionary(list)), as: Self.stated,
        in: statements(of: machine))
    }

    /// Returns nil while the machine has received nothing.
    func statement(of machine: String) throws -> Statement? {
      let bytes: [UInt8]
      do throws(Errno) {
        bytes = try Self.bytes(of: "\(statements(of: machine))/\(Self.stated)")
      } catch {
        guard error == .noSuchFile else { throw error }
        return nil
      }
      let list = try BinaryPropertyList.decode(bytes)
      guard let position = FlowPosition(list), let bundle = list[Self.bundleKey]?.intValue else {
        return nil
      }
      return Statement(position: position, bundle: bundle)
    }
  }
#endif

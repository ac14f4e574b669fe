internal import WormholePropertyLists
internal import WormholeSyscalls

/// The content of `container.plist`.
struct ContainerMarker: FileRecord, Equatable {
  static let fileName = "container.plist"
  /// The format of new containers, and the latest readable format.
  static let format = 1
  /// The greatest epoch: a stamp has five hexadecimal digits for it.
  static let lastEpoch = 0xfffff

  var format = 0
  /// A random name, the same as long as the container exists.
  var id = ""
  /// Seconds since 1970.
  var created = 0.0
  /// The epoch of earlier containers, before ``EpochRecord`` stored the epoch; 0 and left out in
  /// new containers.
  var epoch = 0

  /// Who shares the container; nil in containers made before this key existed: then the option of
  /// the opening process decides.
  var sharing: Sharing?

  mutating func visit(_ fields: inout some FieldVisitor) throws {
    try fields.field("format", &format)
    // A later format may have different keys or types.
    guard format <= Self.format else { return }
    try fields.check("format", format > 0, "\(format) is not a format")
    try fields.field("id", &id)
    try fields.field("created", &created)
    try fields.check("created", created.isFinite, "\(created) is not a time")
    try fields.field("epoch", &epoch, unless: 0)
    try fields.check("epoch", (0...Self.lastEpoch).contains(epoch), "\(epoch) is not an epoch")
    var name = sharing?.name
    try fields.field("sharing", &name)
    sharing = name.flatMap { Sharing(name: $0) }
    try fields.check("sharing", name == sharing?.name, "neither 'owner' nor 'group'")
  }

  static func fresh(_ environment: Environment, _ sharing: Sharing) -> ContainerMarker {
    ContainerMarker(
      format: format, id: environment.randomName() + environment.randomName(),
      created: Double(environment.sinceEpoch()) / 1e9, sharing: sharing)
  }

  /// The file, with its keys in alphabetical order.
  func encoded() throws -> [UInt8] {
    try BinaryEncoder().encode(PropertyListValue.dictionary(entries()))
  }
}

extension ContainerMarker {
  /// Reads the file; errors name the container's path.
  init(_ bytes: [UInt8], path: String) throws(WormholeError) {
    do {
      self = try ContainerMarker(bytes)
    } catch {
      throw WormholeError(
        .damaged, "read", path + "/" + Self.fileName, because: "\(error)",
        hint: "end the container's programs, then put back a copy of the file, or move the file "
          + "out of the container: the next write makes a new file")
    }
    guard format <= Self.format else {
      throw WormholeError(
        .laterFormat, "open container", path,
        because:
          "the container has format \(format), and the program supports format \(Self.format)",
        hint: "use a later version of the program")
    }
  }
}

internal import WormholePropertyLists
internal import WormholeSyscalls

/// The content of `container.plist`.
struct ContainerMarker: Equatable {
  static let fileName = "container.plist"
  /// The format of new containers, and the latest readable format.
  static let format = 1
  /// The greatest epoch: a stamp has five hexadecimal digits for it.
  static let lastEpoch = 0xfffff

  var format: Int
  /// A random name, the same as long as the container exists.
  var id: String
  /// Seconds since 1970.
  var created: Double
  /// The epoch of earlier containers, before ``EpochRecord`` stored the epoch; 0 and left out in
  /// new containers.
  var epoch = 0

  /// Who shares the container; nil in containers made before this key existed: then the option of
  /// the opening process decides.
  var sharing: Sharing?

  static func fresh(_ environment: Environment, _ sharing: Sharing) -> ContainerMarker {
    ContainerMarker(
      format: format, id: environment.randomName() + environment.randomName(),
      created: Double(environment.sinceEpoch()) / 1e9, sharing: sharing)
  }

  func encoded() throws -> [UInt8] {
    var entries: [String: PropertyListValue] = [
      "format": .integer(Int64(format)), "id": .string(id), "created": .real(created),
    ]
    entries["sharing"] = sharing.map { .string($0.name) }
    return try BinaryEncoder().encode(PropertyListValue.dictionary(entries))
  }
}

extension ContainerMarker {
  /// Reads the file; errors name the container's path.
  init(_ bytes: [UInt8], path: String) throws(WormholeError) {
    let name = path + "/" + Self.fileName
    do throws(PropertyListError) {
      let marker = try BinaryPropertyList.decode(bytes)
      // The format first: a later format may have different keys or types.
      format = try marker.entry("format", \.intValue)
      if format <= Self.format {
        id = try marker.entry("id", \.stringValue)
        created = try marker.entry("created", \.doubleValue)
        if marker["epoch"] != nil { epoch = try marker.entry("epoch", \.intValue) }
        if marker["sharing"] != nil {
          sharing = Sharing(name: try marker.entry("sharing", \.stringValue))
          if sharing == nil {
            throw PropertyListError(.typeMismatch, "'sharing' is neither 'owner' nor 'group'")
          }
        }
        guard format > 0, (0...Self.lastEpoch).contains(epoch), created.isFinite else {
          throw PropertyListError(.typeMismatch, "a number is out of range")
        }
        return
      }
    } catch {
      throw WormholeError(.damaged, "read", name, because: "\(error)")
    }
    throw WormholeError(
      .laterFormat, "open container", path,
      because: "the container has format \(format), and the program supports format \(Self.format)",
      hint: "use a later version of the program")
  }
}

extension PropertyListValue {
  /// Returns the value of a key in this dictionary, converted to the expected type.
  ///
  /// Written out and not with `Codable`, whose containers take longer to set up than the file takes
  /// to read.
  fileprivate func entry<Entry>(
    _ key: String, _ kind: (PropertyListValue) -> Entry?
  ) throws(PropertyListError) -> Entry {
    guard let entry = self[key] else {
      throw PropertyListError(.missingKey, "no key '\(key)'")
    }
    guard let value = kind(entry) else {
      throw PropertyListError(.typeMismatch, "'\(key)' has the wrong type")
    }
    return value
  }
}

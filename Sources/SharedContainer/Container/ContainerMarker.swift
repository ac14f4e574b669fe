internal import PropertyLists
internal import Syscalls

/// The content of `container.plist`.
struct ContainerMarker: Equatable {
  /// The format this program writes, and the latest it reads.
  static let format = 1

  var format: Int
  /// A random name, the same as long as the container exists.
  var id: String
  /// Seconds since 1970.
  var created: Double
  /// The epoch in which messages were stamped before ``EpochRecord`` kept it; 0 in new containers,
  /// which leave it out.
  var epoch = 0

  /// Who shares it; nil in containers that were made before this was noted: then whoever opens it
  /// says so.
  var sharing: Sharing?

  static func fresh(_ environment: Environment, _ sharing: Sharing) -> ContainerMarker {
    let id = [environment.random(), environment.random()].map { number in
      let digits = String(number, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }
    return ContainerMarker(
      format: format, id: id.joined(), created: Double(environment.sinceEpoch()) / 1e9,
      sharing: sharing)
  }

  func encoded() throws -> [UInt8] {
    var entries: [String: PropertyListValue] = [
      "format": .integer(Int64(format)), "id": .string(id), "created": .real(created),
    ]
    entries["sharing"] = sharing.map { .string($0.name) }
    return try BinaryEncoder().encode(PropertyListValue.dictionary(entries))
  }

  init(format: Int, id: String, created: Double, sharing: Sharing) {
    self.format = format
    self.id = id
    self.created = created
    self.sharing = sharing
  }

  /// Reads the file; what is wrong with it is told with the container's path.
  init(_ bytes: [UInt8], path: String) throws(WormholeError) {
    let name = path + "/" + ContainerOpening.markerName
    do throws(PropertyListError) {
      let marker = try BinaryPropertyList.decode(bytes)
      // The format first: a later one may have other keys, or keys of other types.
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
        guard format > 0, EpochRecord.isUsable(epoch), created.isFinite else {
          throw PropertyListError(.typeMismatch, "a number in it is out of range")
        }
        return
      }
    } catch {
      throw WormholeError(.damaged, "read", name, because: "\(error)")
    }
    throw WormholeError(
      .laterFormat, "open container", path,
      because: "it has format \(format), and this program knows \(Self.format)",
      hint: "use a later version of the program")
  }
}

extension PropertyListValue {
  /// What a key of this dictionary holds, as what it has to be.
  ///
  /// By hand and not by `Codable`, whose containers take longer to set up than the file takes to
  /// read.
  fileprivate func entry<Entry>(
    _ key: String, _ kind: (PropertyListValue) -> Entry?
  ) throws(PropertyListError) -> Entry {
    guard let entry = self[key] else {
      throw PropertyListError(.missingKey, "no key '\(key)'")
    }
    guard let value = kind(entry) else {
      throw PropertyListError(.typeMismatch, "'\(key)' is of another type")
    }
    return value
  }
}

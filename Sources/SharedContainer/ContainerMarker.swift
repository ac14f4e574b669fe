internal import PropertyLists
internal import Syscalls

/// The content of `container.plist`.
struct ContainerMarker: Codable, Equatable {
  /// The format this program writes, and the latest it reads.
  static let format = 1

  var format: Int
  /// A random name, the same as long as the container exists.
  var id: String
  /// Seconds since 1970.
  var created: Double
  /// Rises with each start of the machine.
  var epoch: Int
  /// The kernel's name for the run of the machine in which `epoch` was last raised.
  var boot: String

  static func fresh(_ environment: Environment) -> ContainerMarker {
    let id = [environment.random(), environment.random()].map { number in
      let digits = String(number, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }
    return ContainerMarker(
      format: format, id: id.joined(), created: Double(environment.sinceEpoch()) / 1e9, epoch: 1,
      boot: environment.bootIdentifier())
  }

  func encoded() throws -> [UInt8] { try BinaryEncoder().encode(self) }

  init(format: Int, id: String, created: Double, epoch: Int, boot: String) {
    self.format = format
    self.id = id
    self.created = created
    self.epoch = epoch
    self.boot = boot
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
        epoch = try marker.entry("epoch", \.intValue)
        boot = try marker.entry("boot", \.stringValue)
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

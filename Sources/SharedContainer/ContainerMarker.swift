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
    struct Version: Decodable { var format: Int }
    let name = path + "/" + ContainerOpening.markerName
    do {
      // The format first: a later one may have other keys, or keys of other types.
      let version = try BinaryDecoder().decode(Version.self, from: bytes)
      guard version.format <= Self.format else {
        throw WormholeError(
          .laterFormat, "open container", path,
          because: "it has format \(version.format), and this program knows \(Self.format)",
          hint: "use a later version of the program")
      }
      self = try BinaryDecoder().decode(ContainerMarker.self, from: bytes)
    } catch let error as WormholeError {
      throw error
    } catch {
      throw WormholeError(.damaged, "read", name, because: "\(error)")
    }
  }
}

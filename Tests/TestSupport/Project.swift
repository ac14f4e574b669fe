/// Facts about the project that its owner decides, in one place.
///
/// `ProjectTests` compares README and the articles with them, and names each line to change.
package enum Project {
  /// The address of the repository, as in `git clone`; nil until the owner publishes one.
  package static let address: String? = nil

  /// The SPDX identifier of the licence; nil until the owner has chosen one.
  package static let licence: String? = nil

  /// The version that the install lines ask for, and that the commands print.
  package static let version = "0.1.0"

  /// The text in place of the address until there is one.
  package static let placeholder = "…/wormhole.git"

  /// The line of README about the two.
  package static var notice: String {
    switch (address, licence) {
    case (nil, nil):
      "The project has no public address and no licence yet; "
        + "`\(placeholder)` stands for the address."
    case (nil, let licence?):
      "Licence: \(licence). The project has no public address yet; "
        + "`\(placeholder)` stands for the address."
    case (_, nil): "The project has no licence yet."
    case (_, let licence?): "Licence: \(licence)."
    }
  }

  /// The host of the address, which texts may name then.
  package static var host: String? {
    guard let address, let start = address.firstRange(of: "://")?.upperBound else { return nil }
    return String(address[start...].prefix { $0 != "/" })
  }
}

internal import WormholeSyscalls

/// An authority of a test's own, and certificates for servers and for machines.
struct TestCertificates: Sendable {
  private let folder: String

  /// Makes the authority; nil, and a notice, where the program `openssl` is missing.
  static func make(in folder: String, for what: String) throws -> TestCertificates? {
    guard Programs.installed("openssl") != nil else {
      skip(what, missing: "openssl")
      return nil
    }
    let made = TestCertificates(folder: folder)
    try made.openssl(
      ["req", "-x509", "-days", "30", "-subj", "/CN=authority", "-out", made.file("authority.pem")]
        + made.newKey("authority"))
    return made
  }

  private init(folder: String) { self.folder = folder }

  /// Makes a certificate.
  ///
  /// - Parameter addresses: the addresses of a server; a machine, which is a client, has none.
  func add(_ name: String, addresses: [String] = []) throws {
    let purpose = addresses.isEmpty ? "clientAuth" : "serverAuth,clientAuth"
    var text = "extendedKeyUsage=\(purpose)\n"
    if !addresses.isEmpty {
      text += "subjectAltName=" + addresses.map { "IP:\($0)" }.joined(separator: ",") + "\n"
    }
    try Descriptor.open(path: folder, [.readOnly, .directory])
      .open("\(name).extensions", [.writeOnly, .create], mode: 0o600).write(text)
    try openssl(
      ["req", "-subj", "/CN=\(name)", "-out", file("\(name).request")] + newKey(name))
    try openssl([
      "x509", "-req", "-days", "30", "-in", file("\(name).request"),
      "-CA", file("authority.pem"), "-CAkey", file("authority.key"), "-CAcreateserial",
      "-extfile", file("\(name).extensions"), "-out", file("\(name).pem"),
    ])
  }

  /// The setting of a server's configuration; the other end must have a certificate, too.
  func setting(_ name: String, and more: String = "verify: true") -> String {
    """
    tls {
      cert_file: "\(file("\(name).pem"))"
      key_file: "\(file("\(name).key"))"
      ca_file: "\(file("authority.pem"))"
      timeout: 10
      \(more)
    }
    """
  }

  private func file(_ name: String) -> String { folder + "/" + name }

  private func newKey(_ name: String) -> [String] {
    [
      "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
      "-keyout", file("\(name).key"),
    ]
  }

  private func openssl(_ words: [String]) throws {
    let outcome = try run("openssl", words)
    guard outcome.status == .exited(0) else {
      throw ServerFailure(description: "openssl \(words[0]): \(outcome.errors)")
    }
  }
}

import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Fault points are for tests: the programs of users must not contain them.
@Suite(.blocking, .notSanitized("it builds for release")) struct ReleaseBuildTests {
  private static let traces = ["WORMHOLE_FAULT", "FaultPoints", "FaultRule"]

  @Test
  func aReleaseBuildHoldsNoFaultPoints() throws {
    guard let compiler = Programs.installed("swiftc") else {
      skip("a release build holds no fault points", missing: "swiftc")
      return
    }
    let folder = try TemporaryDirectory(isPlain: true)
    let plain = try compile(compiler, [], in: folder)
    #expect(plain.count > 10_000, "the room was compiled")
    for trace in Self.traces { #expect(!contains(plain, trace), "\(trace)") }
    // The same search finds the traces in code with fault points.
    let armed = try compile(compiler, ["-D", "FAULT_POINTS"], in: folder)
    for trace in Self.traces { #expect(contains(armed, trace), "\(trace)") }
  }

  /// Compiles the module as a release build does, but without optimizing, which takes long and
  /// would at most remove a part of the code; returns the object's bytes.
  private func compile(
    _ compiler: String, _ options: [String], in folder: TemporaryDirectory
  ) throws -> [UInt8] {
    let room = Programs.source + "/Sources/WormholeSyscalls"
    let headers = Programs.source + "/Sources/WormholeCLinux/include"
    try folder.write(
      "module WormholeCLinux { header \"\(headers)/WormholeCLinux.h\" }\n", to: "module.modulemap")
    let usual = [
      "-swift-version", "6", "-parse-as-library", "-package-name", "wormhole",
      "-enable-upcoming-feature", "MemberImportVisibility",
      "-enable-upcoming-feature", "InternalImportsByDefault",
      "-module-cache-path", folder.path + "/cache", "-I", folder.path,
    ]
    let libC = try run(
      compiler,
      usual + [
        "-emit-module", "-module-name", "WormholeLibC",
        "-o", folder.path + "/WormholeLibC.swiftmodule",
      ] + sources(in: Programs.source + "/Sources/WormholeLibC"), within: .seconds(240))
    #expect(libC.status == .exited(0), "\(libC.errors)")
    let outcome = try run(
      compiler,
      usual + [
        "-c", "-Onone", "-whole-module-optimization", "-module-name", "WormholeSyscalls",
        "-Xcc", "-fmodule-map-file=\(folder.path)/module.modulemap", "-o", folder.path + "/room.o",
      ] + options + sources(in: room), within: .seconds(240))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    return try folder.bytes(of: "room.o")
  }

  private func sources(in folder: String) throws -> [String] {
    let directory = try Descriptor.open(path: folder, [.readOnly, .directory])
    return try directory.names().sorted().flatMap { name in
      let path = folder + "/" + name
      if try directory.status(of: name).kind == .directory { return try sources(in: path) }
      return name.hasSuffix(".swift") ? [path] : []
    }
  }

  private func contains(_ bytes: [UInt8], _ text: String) -> Bool {
    let part = Array(text.utf8)
    return bytes.withUnsafeBufferPointer { bytes in
      var index = 0
      while index + part.count <= bytes.count {
        if bytes[index] == part[0],
          (1..<part.count).allSatisfy({ bytes[index + $0] == part[$0] })
        {
          return true
        }
        index += 1
      }
      return false
    }
  }
}

import Foundation
import TestSupport
import TestTraits
import Testing

@testable import WormholePropertyLists

/// Common tools read the files of our encoder.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct InteroperationTests {
  @Test func foundationReadsOurs() throws {
    let bytes = try BinaryPropertyList.encode(GoldenFileTests.value)
    let object = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
    let data = try PropertyListSerialization.data(
      fromPropertyList: object, format: .binary, options: 0)
    #expect(try BinaryPropertyList.decode(Array(data)) == GoldenFileTests.value)
  }

  @Test func plutilReadsOurs() throws {
    guard let plutil = Tool.plutil else {
      return skip("lists that plutil reads", missing: "plutil")
    }
    let xml = try Tool.run(
      plutil, ["-convert", "xml1", "-o", "-", "-"],
      input: BinaryPropertyList.encode(GoldenFileTests.value))
    #expect(try XMLPropertyList.decode(xml) == GoldenFileTests.value)
    let binary = try Tool.run(
      plutil, ["-convert", "binary1", "-o", "-", "-"],
      input: Array(XMLPropertyList.encode(GoldenFileTests.value).utf8))
    #expect(try BinaryPropertyList.decode(binary) == GoldenFileTests.value)
  }

  @Test func pythonReadsOurs() throws {
    guard let python = Tool.python else {
      return skip("lists that Python reads", missing: "python3")
    }
    let program = """
      import plistlib, sys
      value = plistlib.loads(sys.stdin.buffer.read())
      form = plistlib.FMT_BINARY if sys.argv[1] == "binary" else plistlib.FMT_XML
      sys.stdout.buffer.write(plistlib.dumps(value, fmt=form))
      """
    for form in [PropertyListForm.binary, .xml] {
      for answer in [PropertyListForm.binary, .xml] {
        let bytes = try Tool.run(
          python, ["-c", program, answer.rawValue],
          input: GoldenFileTests.value.written(as: form))
        #expect(try PropertyListValue(reading: bytes) == GoldenFileTests.value)
      }
    }
    let large: PropertyListValue = [.unsigned(.max), .integer(.min), .real(-0.0)]
    let bytes = try Tool.run(
      python, ["-c", program, "binary"], input: BinaryPropertyList.encode(large))
    #expect(try BinaryPropertyList.decode(bytes) == large)
  }

  @Test func libplistReadsOurs() throws {
    guard let plistutil = Tool.plistutil else {
      return skip("lists that plistutil reads", missing: "plistutil")
    }
    let xml = try Tool.run(
      plistutil, ["-i", "-", "-f", "xml", "-o", "-"],
      input: BinaryPropertyList.encode(GoldenFileTests.value))
    #expect(try XMLPropertyList.decode(xml) == GoldenFileTests.value)
  }
}

/// A program from another project.
enum Tool {
  static let plutil = find("plutil")
  static let python = find("python3")
  static let plistutil = find("plistutil")

  private static func find(_ name: String) -> URL? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return path.split(separator: ":").lazy
      .map { URL(filePath: String($0)).appending(path: name) }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }

  /// What it prints; the input has to fit into a pipe.
  static func run(_ tool: URL, _ arguments: [String], input: [UInt8]) throws -> [UInt8] {
    let process = Process()
    process.executableURL = tool
    process.arguments = arguments
    let source = Pipe()
    let result = Pipe()
    process.standardInput = source
    process.standardOutput = result
    try process.run()
    try source.fileHandleForWriting.write(contentsOf: Data(input))
    try source.fileHandleForWriting.close()
    let output = try result.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    return Array(output)
  }
}

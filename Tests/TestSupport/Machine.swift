internal import WormholeSyscalls

/// The machine that the tests share with other programs.
package enum Machine {
  private static let processors = Double(
    files("/sys/devices/system/cpu").filter { $0.wholeMatch(of: /cpu[0-9]+/) != nil }.count)

  /// The part of a processor that a runnable thread gets at present.
  package static var share: Double {
    // The fourth word has the number of runnable threads, and the number of all threads.
    guard let words = try? text("/proc/loadavg").split(separator: " "), words.count > 3,
      let runnable = words[3].split(separator: "/").first.flatMap({ Double($0) }), runnable > 0
    else { return 1 }
    return min(1, max(1, processors) / runnable)
  }

  /// The processor time of a process, and of all its children, in ticks of the kernel.
  package static func ticks(of process: Int32) -> Int {
    let folder = "/proc/\(process)"
    // After the name, which is in parentheses, the time is in the fields 14 to 17 of the line.
    let fields = (try? text(folder + "/stat").split(separator: ")").last?.split(separator: " "))
    guard let fields, fields.count > 14 else { return 0 }
    let own = fields[11...14].compactMap { Int($0) }.reduce(0, +)
    let children = files(folder + "/task").flatMap { thread in
      ((try? text("\(folder)/task/\(thread)/children")) ?? "").split(separator: " ")
    }
    return children.compactMap { Int32($0) }.map(ticks(of:)).reduce(own, +)
  }

  private static func text(_ path: String) throws -> String {
    String(decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
  }

  private static func files(_ path: String) -> [String] {
    (try? Descriptor.open(path: path, [.readOnly, .directory]).names()) ?? []
  }
}

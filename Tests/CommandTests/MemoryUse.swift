import TestSupport
import Testing

/// The peak of a command's memory.
struct MemoryUse {
  let kibibytes: Int

  init(
    _ command: String, input: String = "/dev/null", output: String = "/dev/null", in stage: Stage
  ) throws {
    let program = """
      import resource, subprocess, sys
      subprocess.run(sys.argv[1].split(), stdin=open(sys.argv[2]),
                     stdout=open(sys.argv[3], "w"), check=True)
      print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
      """
    let outcome = try run(
      "sh",
      ["-c", "cd \"$STAGE\" && exec python3 -c \"$0\" \"$@\"", program, command, input, output],
      environment: stage.environment, within: .seconds(600))
    kibibytes = try #require(
      Int(outcome.output.split(separator: "\n").first ?? ""), "\(outcome.errors)")
  }
}

import Wormhole

struct Job: Codable, Sendable {
  var number: Int
}

try await runService {
  let container = try await SharedContainer(directory: "jobs.container")
  let queue = container.queue("jobs", of: Job.self)
  let working = try queue.work { job, _ in
    print("job", job.number)
  }
  try await working.finished()
}
print("ended in order")

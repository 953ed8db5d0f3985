internal import AgentCore
internal import LinuxSystem

/// Where this daemon works: what every job says of its surroundings.
struct Place {
    let executable: String
    let stateDirectory: StateDirectory
    let machine: String
    let boot: BootID

    /// Where it is kept what the desktop was told; nil without a runtime directory.
    let noticeRecord: String?

    func job(_ kind: JobKind, profiles: [ProfileName], _ settings: Settings) -> Job {
        var job = Job(
            kind, profiles: profiles, machine: machine, boot: boot,
            stateDirectory: stateDirectory.path, runtimeDirectory: stateDirectory.runtimePath)
        job.caFile = settings.caFile
        job.proxy = settings.proxy?.text
        return job
    }
}

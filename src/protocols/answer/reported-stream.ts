/** The facts of a streamed answer that every meter has alike: by the reports of its upstream, and by its output. */
import { Buffer } from 'node:buffer'
import type { TokenUsage } from '../../core/pricing/usage.ts'
import { ReportedUsage } from './reported-usage.ts'

/** The base of meters: its members are those of `AnswerStream`. */
export class ReportedStream {
  protected readonly reports = new ReportedUsage()
  firstError: Buffer | null = null
  laterError: Buffer | null = null
  model = ''
  // Last: the fields of a meter that each chunk touches follow it.
  characters = 0

  get usage(): TokenUsage | null {
    return this.reports.usage
  }

  get suspect(): string {
    return this.reports.suspect
  }

  get reported(): unknown {
    return this.reports.reported
  }

  get serviceTier(): string {
    return this.reports.serviceTier
  }

  get charactersSinceUsage(): number {
    return this.reports.charactersBeyond(this.characters)
  }

  get isUsageWhole(): boolean {
    return this.reports.isWhole(this.characters)
  }

  get isAnswer(): boolean {
    return this.characters > 0 || this.reports.isOutputReported
  }

  /** Keeps the first error that comes before content, and the first that comes after it. */
  protected err(payload: Buffer): void {
    if (this.isAnswer) this.laterError ??= Buffer.from(payload)
    else this.firstError ??= Buffer.from(payload)
  }
}

/** Asks the running processes for the state of their channels. */
import {
  CHANNEL_REPORT_SUBJECT,
  type ProcessReport,
  processReport,
} from '../../schemas/config/channel-report.ts'
import type { Nats } from '../nats/nats.ts'

const BOUND_MS = 2_000

/** Returns each process's report; null without an answer. A process of another version may report otherwise: it is left out. */
export async function processReports(nats: Pick<Nats, 'survey'>): Promise<ProcessReport[] | null> {
  const answers = await nats.survey(CHANNEL_REPORT_SUBJECT, BOUND_MS)
  return answers?.flatMap((answer) => processReport.safeParse(JSON.parse(answer)).data ?? []) ?? null
}

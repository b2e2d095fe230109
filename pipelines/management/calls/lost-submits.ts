/** Operations of lost submits. */
import {
  checkLostSubmit,
  closeLostSubmit,
  listLostSubmits,
} from '../../../schemas/management/calls/lost-submits.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { LostSubmit } from '../../../src/postgres/tasks/lost-submits.ts'
import { implement } from '../operation.ts'
import { readCursor, toPage } from '../page.ts'
import { printInstant, printTimeOrNull } from '../shapes.ts'

const lostShape = (lost: LostSubmit) => ({
  id: lost.taskId,
  state: lost.state,
  kind: lost.kind,
  model: lost.model,
  account_id: lost.accountId,
  request_id: lost.requestId,
  channel_id: lost.channelId,
  reason: lost.reason,
  upstream_id: lost.upstreamId,
  upstream_state: lost.upstreamState,
  cost: lost.cost === null ? null : printCredits(lost.cost),
  lost_at: printInstant(lost.lostAt),
  checked_at: printTimeOrNull(lost.checkedAt),
  next_check_at: printTimeOrNull(lost.nextCheckAt),
  closed_at: printTimeOrNull(lost.closedAt),
  closed_by: lost.closedBy,
  close_reason: lost.closeReason,
})

export const lostSubmitOperations = [
  implement(listLostSubmits, async ({ database }, { state, ...input }) => {
    const query = { isOpen: state === 'open', before: readCursor(input), limit: input.limit + 1 }
    return toPage((await database.lostSubmits.list(query)).map(lostShape), input)
  }),
  implement(checkLostSubmit, async ({ write, now }, { id }) =>
    lostShape(await write((writing) => writing.lostSubmits.check(id, now))),
  ),
  implement(closeLostSubmit, async ({ write, now }, { id, ...dealt }) =>
    lostShape(await write((writing) => writing.lostSubmits.close({ taskId: id, ...dealt }, now))),
  ),
]

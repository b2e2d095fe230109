/** Operations of refused payment events. */
import { closeRefusedEvent, listRefusedEvents } from '../../../schemas/management/payments/refused-events.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import type { RefusedEvent } from '../../../src/postgres/payments/refused-events.ts'
import { implement } from '../operation.ts'
import { readCursor, toPage } from '../page.ts'

const eventShape = toApiShape<RefusedEvent>

export const refusedEventOperations = [
  implement(listRefusedEvents, async ({ database }, { state, ...input }) => {
    const query = { isOpen: state === 'open', before: readCursor(input), limit: input.limit + 1 }
    return toPage((await database.payments.listRefusedEvents(query)).map(eventShape), input)
  }),
  implement(closeRefusedEvent, async ({ write }, input) =>
    eventShape(await write((writing) => writing.payments.closeRefusedEvent(input))),
  ),
]

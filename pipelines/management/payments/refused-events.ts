/** Acts of refused payment events. */
import type { Operation } from '../../../schemas/management/operation.ts'
import { closeRefusedEvent, listRefusedEvents } from '../../../schemas/management/payments/refused-events.ts'
import { shapeOf } from '../../../src/core/json/snake-case.ts'
import type { RefusedEvent } from '../../../src/postgres/payments/refused-events.ts'
import { type Act, implement } from '../act.ts'
import { afterOf, page } from '../page.ts'

const act = <O extends Operation>(operation: O, run: Act<object, O>['run']) =>
  implement<object, O>(operation, run)

const eventShape = shapeOf<RefusedEvent>

export const refusedEventActs = [
  act(listRefusedEvents, async ({ database }, { state, ...input }) => {
    const query = { isOpen: state === 'open', before: afterOf(input), limit: input.limit + 1 }
    return page((await database.listRefusedEvents(query)).map(eventShape), input)
  }),
  act(closeRefusedEvent, async ({ write }, input) =>
    eventShape(await write((writing) => writing.closeRefusedEvent(input))),
  ),
]

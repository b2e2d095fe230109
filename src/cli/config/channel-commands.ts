/** `tollgate channels pause|resume|drain|test`: acts of channels as commands. */
import { channelActs } from '../../../pipelines/management/channels/channels.ts'
import {
  drainChannel,
  pauseChannel,
  resumeChannel,
  testChannel,
} from '../../../schemas/management/channels.ts'
import { answerRecord, type Command, type Context } from '../context.ts'
import { runnerOn } from '../management.ts'

const CHANNEL = 'openai-main'

const HOLDS = [
  ['pause', pauseChannel, 'keep new calls from a channel; those under way go on'],
  [
    'drain',
    drainChannel,
    'the same for a channel that is to be removed; it is drained when nothing is under way',
  ],
  ['resume', resumeChannel, 'let calls through to a channel again'],
] as const

export function addChannelCommands(channels: Command, { wiring, isNegativeAnswer }: Context): void {
  const { run } = runnerOn(wiring, channelActs, wiring.withChannels)
  for (const [name, operation, description] of HOLDS)
    channels
      .command(name)
      .description(description)
      .argument('<id>', 'channel id')
      .example(`channels ${name} ${CHANNEL}`)
      .answers(async (id: string) => {
        const { state, drained, in_flight, open_tasks } = await run(operation, { id })
        return answerRecord({ id, state, drained, in_flight, open_tasks })
      })
  channels
    .command('test')
    .description('send the smallest call to a channel, and say what it costs; exit code 1 where it fails')
    .argument('<id>', 'channel id')
    .option('--model <id>', 'model to call (default: the first of the channel)')
    .example(`channels test ${CHANNEL}`)
    .answers(async (id: string, { model }: { model?: string }) => {
      const outcome = await run(testChannel, { id, model })
      if (!outcome.ok) isNegativeAnswer()
      return answerRecord(outcome)
    })
}

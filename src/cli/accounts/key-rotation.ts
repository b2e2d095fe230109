/** `tollgate key rotate` and `tollgate key end-former`: the secrets of one key. */
import { Option } from 'commander'
import { keyRotationActs } from '../../../pipelines/management/accounts/key-rotation.ts'
import { DEFAULT_GRACE_SECONDS } from '../../../schemas/accounts/key.ts'
import { endFormerSecret, rotateKey } from '../../../schemas/management/accounts/key-rotation.ts'
import { answerRecord, type Command, type Context } from '../context.ts'
import { runnerOf } from '../management.ts'
import { grace } from '../option-values.ts'
import { keyInWords } from './key-text.ts'

export function addRotationCommands(key: Command, context: Context): void {
  const { run } = runnerOf(context.wiring, keyRotationActs, () => ({}))
  key
    .command('rotate')
    .description('give a key a new secret under the same id; prints it')
    .argument('<id>', 'key id')
    .addOption(
      new Option(
        '--grace <time>',
        'for so long the former secret works after the first use of the new one, 0s to 7d',
      )
        .argParser(grace)
        .default(DEFAULT_GRACE_SECONDS, '24h'),
    )
    .example('key rotate key_01J8Z3N4V9QKX2T5W7Y0ABCDEF --grace 24h')
    .answers(async (id: string, options: { grace: number }) => {
      const json = await run(rotateKey, { id, grace_seconds: options.grace })
      return answerRecord(json, keyInWords(json))
    })
  key
    .command('end-former')
    .description('refuse the former secret of a rotated key from now on')
    .argument('<id>', 'key id')
    .example('key end-former key_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => {
      const json = await run(endFormerSecret, { id })
      return answerRecord(json, keyInWords(json))
    })
}

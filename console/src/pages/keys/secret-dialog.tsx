/** Shows a key itself: when it is created, revealed or rotated. */
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { CodeBlock } from '../../ui/text.tsx'
import type { Created } from './state.tsx'

export const snippet = (key: string) =>
  `curl -N ${location.origin}/v1/chat/completions \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{"model":"MODEL","stream":true,"messages":[{"role":"user","content":"Hello!"}]}'`

export const SecretDialog = ({ shown, onClose }: { shown: Created | null; onClose(): void }) => {
  return (
    <Dialog
      title={shown?.name ?? ''}
      description={t(
        'Anyone who has this key spends from the wallet of the account. Keep it where your program reads its secrets.',
      )}
      isOpen={shown !== null}
      onClose={onClose}
    >
      {shown && (
        <div className="flex flex-col gap-3">
          <CodeBlock isWrapped label={t('Key')} code={shown.key} />
          <CodeBlock label="curl" code={snippet(shown.key)} />
          <Done onClose={onClose} />
        </div>
      )}
    </Dialog>
  )
}

/** Shows the secret of a key when it is created, revealed or rotated. */
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { CodeBlock } from '../../ui/text.tsx'
import { FirstCall } from '../first-call/first-call.tsx'
import type { Created } from './status.tsx'

export const SecretDialog = ({ shown, onClose }: { readonly shown: Created; onClose(): void }) => (
  <Dialog
    isWide
    title={shown.name}
    description={t(
      'Anyone who has this key can spend from the wallet of the account. Keep it where your program reads its secrets.',
    )}
    onClose={onClose}
  >
    <div className="flex flex-col gap-3">
      <CodeBlock isWrapped label={t('Key')} code={shown.key} />
      <FirstCall
        accountId={shown.account_id}
        secret={{ id: shown.id, key: shown.key, models: shown.allowed_models }}
      />
      <Done onClose={onClose} />
    </div>
  </Dialog>
)

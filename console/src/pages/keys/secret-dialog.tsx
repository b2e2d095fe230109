/** Shows the secret of a key when it is created, revealed or rotated. */
import { ROUTES } from '../../../../schemas/routes.ts'
import { printCurl } from '../../curl.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { CodeBlock } from '../../ui/text.tsx'
import type { Created } from './status.tsx'

/** Prints a first call. @param key default: read from the environment */
export const printFirstCall = (key?: string): string => {
  const messages = [{ role: 'user', content: 'Hello!' }]
  return printCurl(
    location.origin,
    ROUTES.createChatCompletion[1],
    { model: 'MODEL', stream: true, messages },
    { key },
  )
}

export const SecretDialog = ({ shown, onClose }: { readonly shown: Created; onClose(): void }) => (
  <Dialog
    title={shown.name}
    description={t(
      'Anyone who has this key can spend from the wallet of the account. Keep it where your program reads its secrets.',
    )}
    onClose={onClose}
  >
    <div className="flex flex-col gap-3">
      <CodeBlock isWrapped label={t('Key')} code={shown.key} />
      <CodeBlock label="curl" code={printFirstCall(shown.key)} />
      <Done onClose={onClose} />
    </div>
  </Dialog>
)

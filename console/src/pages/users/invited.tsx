/** The result of an invitation: a link to copy, or a notice that the email was sent. */
import { useLingui } from '@lingui/react'
import { t } from '../../i18n.ts'
import { CodeBlock } from '../../ui/text.tsx'

export function Invited({ url }: { readonly url: string | null }) {
  useLingui()
  if (url === null) return <p role="status">{t('The invitation is on its way by email.')}</p>
  return (
    <>
      <p>{t('Hand the link on to the person yourself.')}</p>
      <CodeBlock isWrapped label={t('Link')} code={url} />
    </>
  )
}

/** The OpenID Connect providers that the user can sign in with. */
import { useMutation } from '@tanstack/react-query'
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Action } from '../../ui/dialog.tsx'
import { Badge, FormError } from '../../ui/states.tsx'
import { rememberWay } from '../sign-in/remembered.ts'
import { SECURITY, Section, type Security } from './section.tsx'

export function ConnectedProviders({ security }: { readonly security: Security }) {
  const ways = useGet('signInWays', {})
  const connect = useMutation({
    mutationFn: async (id: string) => {
      const { ticket, url } = await request('beginIdentity', { id })
      rememberWay({ ticket, next: '/profile', isConnecting: true })
      location.assign(url)
    },
  })
  const connected = new Set(security.providers.map(({ id }) => id))
  const others = ways.data?.providers.filter(({ id }) => !connected.has(id)) ?? []
  if (connected.size === 0 && others.length === 0) return null
  return (
    <Section title={t('Sign-in providers')}>
      <ul className="flex flex-col gap-2">
        {security.providers.map(({ id, name }) => (
          <li key={id} className="flex flex-wrap items-center gap-3">
            <span className="font-medium">{name}</span>
            <Badge tone="good">{t('Connected')}</Badge>
            <Action
              confirm={{
                title: t('Disconnect {name}', { name }),
                description: t('You can no longer sign in with it, unless you connect it again.'),
                submit: t('Disconnect'),
              }}
              done={t('Provider disconnected')}
              changes={[SECURITY]}
              run={() => request('removeIdentity', { id })}
            >
              {t('Disconnect')}
            </Action>
          </li>
        ))}
        {others.map(({ id, name }) => (
          <li key={id} className="flex flex-wrap items-center gap-3">
            <span className="font-medium">{name}</span>
            <Button isBusy={connect.isPending} onClick={() => connect.mutate(id)}>
              {t('Connect')}
            </Button>
          </li>
        ))}
      </ul>
      <FormError error={connect.error} />
    </Section>
  )
}

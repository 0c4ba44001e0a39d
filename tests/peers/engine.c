/* One pass of multi-task TD over a task set, as ictd/fused_engine.py, with n and L known to the compiler. */
#include <math.h>

#define W (2 * N)

long train(long tasks, const double *restrict transition, const double *restrict reward,
           const unsigned char *restrict visits, const unsigned char *restrict transitions, double discount,
           double learning_rate, double *restrict parameter, double *restrict mean, double *restrict square)
{
    double *u = parameter, (*A)[W] = (double (*)[W])(parameter + W);
    double gradient[W + W * W], (*dA)[W] = (double (*)[W])(gradient + W);
    double Y[N][N], T[N][N], across[N][N], Bq[N][N], dT[N][N], AX[W][N], D[N][W], h[L][N];
    double g[N], e[N], q[N], lam[N], following[N], next[N], estimate[N];
    for (long task = 0; task < tasks; task++) {
        const double *p = transition + task * N * N, *r = reward + task * N;
        const unsigned char *v = visits + task * N, *c = transitions + task * N * N;
        for (int s = 0; s < N; s++)
            for (int j = 0; j < N; j++)
                Y[j][s] = discount * p[s * N + j];
        for (int i = 0; i < W; i++) {
            for (int s = 0; s < N; s++)
                AX[i][s] = A[i][s];
            for (int j = 0; j < N; j++)
                for (int s = 0; s < N; s++)
                    AX[i][s] += A[i][N + j] * Y[j][s];
        }
        for (int i = 0; i < N; i++) {
            for (int s = 0; s < N; s++) {
                T[i][s] = AX[i][s];
                Bq[i][s] = A[i][s];
            }
            for (int j = 0; j < N; j++)
                for (int s = 0; s < N; s++) {
                    T[i][s] += Y[j][i] * AX[N + j][s];
                    Bq[i][s] += Y[j][i] * A[N + j][s];
                }
            for (int s = 0; s < N; s++) {
                T[i][s] /= N;
                Bq[i][s] /= N;
            }
            T[i][i] += 1;
        }
        for (int s = 0; s < N; s++) {
            double total = u[s] + r[s];
            for (int j = 0; j < N; j++)
                total += u[N + j] * Y[j][s];
            h[0][s] = g[s] = total;
        }
        for (int l = 1; l < L; l++) {
            for (int s = 0; s < N; s++)
                next[s] = 0;
            for (int j = 0; j < N; j++)
                for (int s = 0; s < N; s++)
                    next[s] += h[l - 1][j] * T[j][s];
            for (int s = 0; s < N; s++) {
                h[l][s] = next[s];
                g[s] += next[s];
            }
        }
        for (int s = 0; s < N; s++) {
            estimate[s] = 0;
            for (int j = 0; j < N; j++)
                estimate[s] -= g[j] * Bq[j][s];
            if (!isfinite(estimate[s]))
                return task;
        }
        double batch = 0;
        for (int s = 0; s < N; s++) {
            double target = v[s] * r[s];
            batch += v[s];
            for (int j = 0; j < N; j++)
                target += discount * c[s * N + j] * estimate[j];
            e[s] = target - v[s] * estimate[s];
        }
        for (int s = 0; s < N; s++)
            e[s] /= -batch;
        for (int j = 0; j < N; j++) {
            q[j] = 0;
            for (int s = 0; s < N; s++)
                q[j] += Bq[j][s] * e[s];
        }
        for (int i = 0; i < N; i++) {
            lam[i] = q[i];
            for (int j = 0; j < N; j++) {
                dT[i][j] = 0;
                across[j][i] = T[i][j];
            }
        }
        for (int l = L - 2; l >= 0; l--) {
            for (int i = 0; i < N; i++) {
                following[i] = lam[i];
                next[i] = q[i];
            }
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++)
                    dT[i][j] += h[l][i] * following[j];
            for (int j = 0; j < N; j++)
                for (int i = 0; i < N; i++)
                    next[i] += across[j][i] * following[j];
            for (int i = 0; i < N; i++)
                lam[i] = next[i];
        }
        for (int i = 0; i < N; i++)
            for (int s = 0; s < N; s++) {
                double total = 0;
                D[i][s] = (dT[i][s] + g[i] * e[s]) / N;
                for (int j = 0; j < N; j++)
                    total += dT[i][j] * Y[s][j];
                D[i][N + s] = total / N;
            }
        for (int i = 0; i < N; i++) {
            double total = 0;
            gradient[i] = -lam[i];
            for (int s = 0; s < W; s++) {
                dA[i][s] = -D[i][s];
                dA[N + i][s] = 0;
            }
            for (int j = 0; j < N; j++) {
                total -= Y[i][j] * lam[j];
                for (int s = 0; s < W; s++)
                    dA[N + i][s] -= Y[i][j] * D[j][s];
            }
            gradient[N + i] = total;
        }
        double root = sqrt(1 - pow(0.999, task + 1)), rate = learning_rate * root / (1 - pow(0.9, task + 1));
        for (int i = 0; i < W + W * W; i++) {
            mean[i] += (1 - 0.9) * (gradient[i] - mean[i]);
            square[i] = 0.999 * square[i] + (1 - 0.999) * gradient[i] * gradient[i];
            parameter[i] -= rate * mean[i] / (sqrt(square[i]) + 1e-8 * root);
        }
    }
    return tasks;
}

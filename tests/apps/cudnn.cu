// SPDX-License-Identifier: Apache-2.0
// cuDNN: convolution forwards and both ways backwards, pooling, activation, softmax, batch normalisation, a
// tensor's addition and reduction, dropout with a state; single precision and half. Against loops on the
// host.
#include "app.h"
#include "libs.h"
#include <cuda_fp16.h>
#include <cudnn.h>

enum { B = 2, C = 4, H = 12, W = 10, F = 6, S = 3 };

static cudnnHandle_t h;
static float one = 1, zero;

static cudnnTensorDescriptor_t tensor(int n, int c, int y, int x, cudnnDataType_t type)
{
	cudnnTensorDescriptor_t t;

	LIB(cudnnCreateTensorDescriptor(&t));
	LIB(cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, type, n, c, y, x));
	return t;
}

static size_t at(int n, int c, int y, int x, int channels)
{
	return ((size_t)(n * channels + c) * H + y) * W + x;
}

/* Each product of one output: f(output, input, weight). */
template <typename Each> static void each_product(Each f)
{
	for (int n = 0; n < B; n++)
		for (int o = 0; o < F; o++)
			for (int y = 0; y < H; y++)
				for (int x = 0; x < W; x++)
					for (int c = 0; c < C; c++)
						for (int i = 0; i < S; i++)
							for (int j = 0; j < S; j++) {
								int v = y + i - 1, u = x + j - 1;
								if (v >= 0 && v < H && u >= 0 && u < W)
									f(at(n, o, y, x, F),
										at(n, c, v, u, C),
										(size_t)((o * C + c) * S +
											 i) * S +
											j);
							}
}

template <typename T> static void convolution(const char *name, cudnnDataType_t type, double tolerance)
{
	std::vector<T> x, w, g;
	for (float v : noise_vector<float>(B * C * H * W, 41))
		x.push_back((T)v);
	for (float v : noise_vector<float>(F * C * S * S, 42))
		w.push_back((T)v);
	for (float v : noise_vector<float>(B * F * H * W, 43))
		g.push_back((T)v);
	std::vector<double> y(g.size()), dx(x.size()), dw(w.size());
	dev<T> gx(x), gw(w), gy(y.size()), gg(g), gdx(x.size()), gdw(w.size());
	dev<char> work(64 << 20);
	cudnnTensorDescriptor_t tx = tensor(B, C, H, W, type), ty = tensor(B, F, H, W, type);
	cudnnFilterDescriptor_t tw;
	cudnnConvolutionDescriptor_t conv;
	cudnnConvolutionFwdAlgoPerf_t forward;
	cudnnConvolutionBwdDataAlgoPerf_t data;
	cudnnConvolutionBwdFilterAlgoPerf_t filter;
	int found;

	LIB(cudnnCreateFilterDescriptor(&tw));
	LIB(cudnnSetFilter4dDescriptor(tw, type, CUDNN_TENSOR_NCHW, F, C, S, S));
	LIB(cudnnCreateConvolutionDescriptor(&conv));
	LIB(cudnnSetConvolution2dDescriptor(
		conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
	LIB(cudnnSetConvolutionMathType(
		conv, type == CUDNN_DATA_FLOAT ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH));
	LIB(cudnnGetConvolutionForwardAlgorithm_v7(h, tx, tw, conv, ty, 1, &found, &forward));
	LIB(cudnnConvolutionForward(
		h, &one, tx, gx, tw, gw, conv, forward.algo, work, 64 << 20, &zero, ty, gy));
	each_product([&](size_t o, size_t i, size_t k) { y[o] += number(x[i]) * number(w[k]); });
	all_close(name, gy.get(), y, tolerance);
	LIB(cudnnGetConvolutionBackwardDataAlgorithm_v7(h, tw, ty, conv, tx, 1, &found, &data));
	LIB(cudnnConvolutionBackwardData(
		h, &one, tw, gw, ty, gg, conv, data.algo, work, 64 << 20, &zero, tx, gdx));
	each_product([&](size_t o, size_t i, size_t k) { dx[i] += number(g[o]) * number(w[k]); });
	all_close(name, gdx.get(), dx, tolerance);
	LIB(cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, tx, ty, conv, tw, 1, &found, &filter));
	LIB(cudnnConvolutionBackwardFilter(
		h, &one, tx, gx, ty, gg, conv, filter.algo, work, 64 << 20, &zero, tw, gdw));
	each_product([&](size_t o, size_t i, size_t k) { dw[k] += number(g[o]) * number(x[i]); });
	all_close(name, gdw.get(), dw, tolerance);
	LIB(cudnnDestroyTensorDescriptor(tx));
	LIB(cudnnDestroyTensorDescriptor(ty));
	LIB(cudnnDestroyFilterDescriptor(tw));
	LIB(cudnnDestroyConvolutionDescriptor(conv));
	printf("convolution, %s\n", name);
}

static void layers()
{
	std::vector<float> x = noise_vector<float>(B * C * H * W, 44);
	std::vector<double> want(x.size()), pooled;
	dev<float> gx(x), gy(x.size());
	cudnnTensorDescriptor_t t = tensor(B, C, H, W, CUDNN_DATA_FLOAT),
				half = tensor(B, C, H / 2, W / 2, CUDNN_DATA_FLOAT),
				rows = tensor(B * C, H * W, 1, 1, CUDNN_DATA_FLOAT),
				channels = tensor(1, C, 1, 1, CUDNN_DATA_FLOAT);
	cudnnActivationDescriptor_t sigmoid;
	cudnnPoolingDescriptor_t pool;

	LIB(cudnnCreateActivationDescriptor(&sigmoid));
	LIB(cudnnSetActivationDescriptor(sigmoid, CUDNN_ACTIVATION_SIGMOID, CUDNN_PROPAGATE_NAN, 0));
	LIB(cudnnActivationForward(h, sigmoid, &one, t, gx, &zero, t, gy));
	for (size_t i = 0; i < x.size(); i++)
		want[i] = 1 / (1 + exp(-(double)x[i]));
	all_close("sigmoid", gy.get(), want, 1e-5);
	LIB(cudnnDestroyActivationDescriptor(sigmoid));

	LIB(cudnnCreatePoolingDescriptor(&pool));
	LIB(cudnnSetPooling2dDescriptor(pool, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
	LIB(cudnnPoolingForward(h, pool, &one, t, gx, &zero, half, gy));
	for (int i = 0; i < B * C; i++)
		for (int y = 0; y < H; y += 2)
			for (int v = 0; v < W; v += 2) {
				const float *p = &x[(size_t)(i * H + y) * W + v];
				pooled.push_back(fmax(fmax(p[0], p[1]), fmax(p[W], p[W + 1])));
			}
	std::vector<float> got = gy.get();
	got.resize(pooled.size());
	all_close("maximum pooling", got, pooled, 0);
	LIB(cudnnDestroyPoolingDescriptor(pool));

	LIB(cudnnSoftmaxForward(
		h, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, &one, rows, gx, &zero, rows, gy));
	for (int i = 0; i < B * C; i++) {
		double sum = 0;
		for (int k = 0; k < H * W; k++)
			sum += exp((double)x[i * H * W + k]);
		for (int k = 0; k < H * W; k++)
			want[i * H * W + k] = exp((double)x[i * H * W + k]) / sum;
	}
	all_close("softmax", gy.get(), want, 1e-6);

	dev<float> scale(std::vector<float>{1, 2, 3, 4}), bias(std::vector<float>{4, 3, 2, 1}), mean(C),
		variance(C), keep(C), invert(C);
	LIB(cudnnBatchNormalizationForwardTraining(h, CUDNN_BATCHNORM_SPATIAL, &one, &zero, t, gx, t, gy,
		channels, scale, bias, 1.0, mean, variance, 1e-5, keep, invert));
	for (int c = 0; c < C; c++) {
		double sum = 0, squares = 0;
		for (int n = 0; n < B; n++)
			for (int k = 0; k < H * W; k++) {
				double v = x[(size_t)(n * C + c) * H * W + k];
				sum += v;
				squares += v * v;
			}
		sum /= B * H * W;
		squares = squares / (B * H * W) - sum * sum;
		for (int n = 0; n < B; n++)
			for (int k = 0; k < H * W; k++) {
				size_t i = (size_t)(n * C + c) * H * W + k;
				want[i] = (c + 1) * (x[i] - sum) / sqrt(squares + 1e-5) + 4 - c;
			}
	}
	all_close("batch normalisation", gy.get(), want, 1e-4);

	LIB(cudnnAddTensor(h, &one, channels, bias, &zero, t, gy));
	for (size_t i = 0; i < x.size(); i++)
		want[i] = 4 - (double)(i / (H * W) % C);
	all_close("addition", gy.get(), want, 0);

	cudnnDropoutDescriptor_t drop;
	size_t states, reserve;
	LIB(cudnnCreateDropoutDescriptor(&drop));
	LIB(cudnnDropoutGetStatesSize(h, &states));
	LIB(cudnnDropoutGetReserveSpaceSize(t, &reserve));
	dev<char> state(states), mask(reserve);
	LIB(cudnnSetDropoutDescriptor(drop, h, 0.5f, state, states, 77));
	LIB(cudnnDropoutForward(h, drop, t, gx, t, gy, mask, reserve));
	got = gy.get();
	int dropped = 0;
	for (size_t i = 0; i < x.size(); i++) {
		if (got[i] != 0)
			close_to("dropout", i, got[i], 2.0 * x[i], 1e-6);
		dropped += got[i] == 0;
	}
	if (dropped < (int)x.size() * 2 / 5 || dropped > (int)x.size() * 3 / 5)
		fail("%d of %zu dropped", dropped, x.size());
	LIB(cudnnDestroyDropoutDescriptor(drop));
	for (cudnnTensorDescriptor_t d : {t, half, rows, channels})
		LIB(cudnnDestroyTensorDescriptor(d));
	printf("layers, %d dropped\n", dropped);
}

int main(void)
{
	LIB(cudnnCreate(&h));
	printf("~ cuDNN %zu\n", cudnnGetVersion());
	convolution<float>("single", CUDNN_DATA_FLOAT, 1e-4);
	convolution<__half>("half", CUDNN_DATA_HALF, 2e-2);
	layers();
	LIB(cudnnDestroy(h));
	return pass();
}
